/*
 * The tables and functions of a schema. The functions are the whole traffic: each call is one statement, so one round
 * trip and one transaction. Their settings make every plan walk the index: a plan that was cached while the table was
 * small would read all of it later.
 */

/**
 * A change of the schema. It takes moments: calls of servers wait for it, and it has the time of one call. Contents move
 * afterwards, in batches.
 *
 * Functions carry in their names the version that made them, so that two releases can use one schema at once. A step
 * that only adds leaves `usableFrom` as it was. A step that older releases cannot follow raises it to its own version
 * and makes every function anew: before it, the functions of older versions are dropped.
 */
export interface SchemaStep {
  /** The version to which it leads, from the one before. */
  readonly version: number
  /** The version that a release must know to use the schema afterwards. */
  readonly usableFrom: number
  /** SQL for the schema of this name, which is quoted. */
  readonly statements: (of: string) => readonly string[]
}

/** All steps, the newest last. The first one makes a schema where there is none. */
export const SCHEMA_STEPS: readonly SchemaStep[] = [{ version: 1, usableFrom: 1, statements: creation }]

const SETTINGS = [
  'enable_seqscan',
  'enable_bitmapscan',
  'enable_hashjoin',
  'enable_mergejoin',
  'enable_material',
  'jit',
].map((name) => `SET ${name} = off`)

export interface Statements {
  readonly getMany: string
  readonly range: string
  readonly insertMany: string
  readonly commit: string
}

export function statementsOf(schema: string): Statements {
  const of = quoted(schema)
  return {
    getMany: `SELECT ${of}.read_records_1($1, $2) AS frame`,
    range: `SELECT ${of}.read_range_1($1, $2, $3, $4, $5) AS frame`,
    insertMany: `SELECT ${of}.insert_records_1($1, $2, $3) AS frame`,
    commit: `SELECT lost_index, held FROM ${of}.commit_records_1($1, $2, $3, $4)`,
  }
}

function creation(of: string): readonly string[] {
  return [
    `CREATE SCHEMA IF NOT EXISTS ${of}`,
    `CREATE TABLE ${of}.records (key bytea PRIMARY KEY, value bytea NOT NULL)`,
    // Values are compressed already, or too small for it.
    `ALTER TABLE ${of}.records ALTER value SET STORAGE EXTERNAL`,
    `CREATE TABLE ${of}.schema_version (version integer NOT NULL, usable_from integer NOT NULL)`,
    `INSERT INTO ${of}.schema_version VALUES (0, 0)`,
    readRecords(of),
    readRange(of),
    insertRecords(of),
    commitRecords(of),
  ]
}

/** The first values of `keys`, framed, as many as `bytes_max` allows and at least one. */
function readRecords(of: string): string {
  return plpgsql(
    `${of}.read_records_1(keys bytea[], bytes_max integer) RETURNS bytea`,
    '',
    `
    RETURN (
      SELECT string_agg(int4send(coalesce(octet_length(value), -1)) || coalesce(value, ''), '' ORDER BY n)
      FROM (
        SELECT n, value, sum(octet_length(value)) OVER (ORDER BY n) - octet_length(value) AS bytes_before
        FROM unnest(keys) WITH ORDINALITY AS wanted (key, n) LEFT JOIN ${of}.records AS r ON r.key = wanted.key
      ) AS found
      WHERE coalesce(bytes_before, 0) < bytes_max
    );`,
  )
}

/** A page of a range: keys and values in turn, framed, as many as `bytes_max` allows and at least one entry. */
function readRange(of: string): string {
  const page = (order: 'ASC' | 'DESC'): string => `
      RETURN (
        SELECT string_agg(int4send(octet_length(key)) || key || int4send(octet_length(value)) || value, '' ORDER BY key ${order})
        FROM (
          SELECT key, value,
            sum(octet_length(value) + octet_length(key)) OVER (ORDER BY key ${order}) - octet_length(value) - octet_length(key) AS bytes_before
          FROM (
            SELECT key, value FROM ${of}.records AS r WHERE r.key >= first AND r.key < last ORDER BY r.key ${order} LIMIT entries_max
          ) AS page
        ) AS found
        WHERE bytes_before < bytes_max
      );`
  return plpgsql(
    `${of}.read_range_1(first bytea, last bytea, entries_max integer, bytes_max integer, is_reverse boolean) RETURNS bytea`,
    '',
    `IF is_reverse THEN ${page('DESC')} END IF; ${page('ASC')}`,
  )
}

/**
 * NULL if all entries were put. Otherwise, framed and in the order of `keys`: the earlier value, or -2 for an entry that
 * was put, -1 for one whose earlier value went a moment ago, and -3 for a value beyond `bytes_max`. Keys ascend, which
 * is the order of all locks.
 */
function insertRecords(of: string): string {
  return plpgsql(
    `${of}.insert_records_1(keys bytea[], vals bytea[], bytes_max integer) RETURNS bytea`,
    'DECLARE put bytea[]; next_put integer := 1; answers bytea[]; held bytea; bytes_left integer := bytes_max;',
    `
    WITH inserted AS (
      INSERT INTO ${of}.records (key, value) SELECT key, value FROM unnest(keys, vals) AS entry (key, value)
        ON CONFLICT (key) DO NOTHING RETURNING key
    ) SELECT array_agg(key ORDER BY key) INTO put FROM inserted;
    IF cardinality(put) = cardinality(keys) THEN RETURN NULL; END IF;
    FOR n IN 1 .. cardinality(keys) LOOP
      IF next_put <= cardinality(put) AND keys[n] = put[next_put] THEN
        next_put := next_put + 1;
        answers[n] := int4send(-2);
        CONTINUE;
      END IF;
      SELECT r.value INTO held FROM ${of}.records AS r WHERE r.key = keys[n];
      IF NOT FOUND THEN answers[n] := int4send(-1);
      ELSIF octet_length(held) > bytes_left THEN answers[n] := int4send(-3);
      ELSE
        answers[n] := int4send(octet_length(held)) || held;
        bytes_left := bytes_left - octet_length(held);
      END IF;
    END LOOP;
    RETURN (SELECT string_agg(answer, '' ORDER BY n) FROM unnest(answers) WITH ORDINALITY AS framed (answer, n));`,
  )
}

/**
 * All or nothing. `flags` has a byte for each key: 1 puts its value, 2 removes it, 4 expects what `wants` has, where
 * NULL is an absent key. Returns the expectations that did not hold.
 *
 * The first loop locks every key, in ascending order: a row that exists by the conflict, whose update never takes place,
 * and an absent one by putting it. What it put and nobody wants to put goes at the end.
 */
function commitRecords(of: string): string {
  return plpgsql(
    `${of}.commit_records_1(keys bytea[], flags bytea, vals bytea[], wants bytea[]) RETURNS TABLE (lost_index integer, held bytea)`,
    'DECLARE named record; flag integer; is_fresh bytea := flags; is_lost boolean := false;',
    `
    FOR named IN SELECT * FROM unnest(keys, vals, wants) WITH ORDINALITY AS u (key, val, want, n) LOOP
      INSERT INTO ${of}.records AS r (key, value) VALUES (named.key, coalesce(named.val, ''))
        ON CONFLICT (key) DO UPDATE SET value = r.value WHERE false;
      is_fresh := set_byte(is_fresh, (named.n - 1)::integer, FOUND::integer);
      held := NULL;
      IF NOT FOUND THEN SELECT r.value INTO held FROM ${of}.records AS r WHERE r.key = named.key; END IF;
      IF get_byte(flags, (named.n - 1)::integer) & 4 <> 0 AND held IS DISTINCT FROM named.want THEN
        is_lost := true;
        lost_index := named.n - 1;
        RETURN NEXT;
      END IF;
    END LOOP;
    FOR named IN SELECT * FROM unnest(keys, vals) WITH ORDINALITY AS u (key, val, n) LOOP
      flag := CASE WHEN is_lost THEN 0 ELSE get_byte(flags, (named.n - 1)::integer) END;
      IF get_byte(is_fresh, (named.n - 1)::integer) = 1 THEN
        IF flag & 1 = 0 THEN DELETE FROM ${of}.records AS r WHERE r.key = named.key; END IF;
      ELSIF flag & 1 <> 0 THEN UPDATE ${of}.records AS r SET value = named.val WHERE r.key = named.key;
      ELSIF flag & 2 <> 0 THEN DELETE FROM ${of}.records AS r WHERE r.key = named.key;
      END IF;
    END LOOP;`,
  )
}

function plpgsql(signature: string, declarations: string, body: string): string {
  return `CREATE FUNCTION ${signature} LANGUAGE plpgsql VOLATILE ${SETTINGS.join(' ')} AS $body$
  #variable_conflict use_column
  ${declarations}
  BEGIN
  ${body}
  END
  $body$`
}

/** As SQL takes it for a name. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
