import type { Connection } from './connections.ts'

/*
 * The tables and functions of a schema. The functions are the whole traffic: each call is one statement, so one round
 * trip and one transaction. Their settings make every plan walk the index: a plan that was cached while the table was
 * small would read all of it later.
 */

/** The version of this release. Functions carry it in their names, so that two releases can use one schema at once. */
const VERSION = 1

/** Any number that other programs do not use; the second half of the lock is the name of the schema. */
const LOCK = 1_937_010_551

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

/**
 * Makes the schema, or brings an older one to this release. Servers that start at once take turns. Throws for a schema
 * of a newer release that this one cannot use.
 */
export async function prepareSchema(connection: Connection, schema: string): Promise<void> {
  if (await isCurrent(connection, schema)) return
  await connection.query('BEGIN')
  try {
    await connection.query('SELECT pg_advisory_xact_lock($1, hashtext($2))', [LOCK, schema])
    if (!(await isCurrent(connection, schema)))
      for (const statement of creation(schema)) await connection.query(statement)
    await connection.query('COMMIT')
  } catch (error) {
    await connection.query('ROLLBACK').catch(() => undefined)
    throw error
  }
}

async function isCurrent(connection: Connection, schema: string): Promise<boolean> {
  const table = `${quoted(schema)}.schema_version`
  // Not `to_regclass`: it may remember that the table was absent before another server made it.
  const there = `SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'schema_version'`
  if ((await connection.query(there, [schema])).length === 0) return false
  const [row] = await connection.query(`SELECT version, usable_from FROM ${table}`)
  const [version, usableFrom] = [Number(row?.version), Number(row?.usable_from)]
  if (usableFrom > VERSION)
    throw new Error(
      `the schema ${quoted(schema)} has version ${version} and can be used from version ${usableFrom} on; this release ` +
        `uses version ${VERSION}; nothing was changed; use the release that wrote it, or a newer one`,
    )
  if (!(version >= VERSION)) throw new Error(`the table ${table} is damaged: it must hold one row with the version`)
  return true
}

function creation(schema: string): string[] {
  const of = quoted(schema)
  return [
    `CREATE SCHEMA IF NOT EXISTS ${of}`,
    `CREATE TABLE ${of}.records (key bytea PRIMARY KEY, value bytea NOT NULL)`,
    // Values are compressed already, or too small for it.
    `ALTER TABLE ${of}.records ALTER value SET STORAGE EXTERNAL`,
    `CREATE TABLE ${of}.schema_version (version integer NOT NULL, usable_from integer NOT NULL)`,
    `INSERT INTO ${of}.schema_version VALUES (${VERSION}, ${VERSION})`,
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

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
