import { type ObjectWriter, reference, references, type Written } from './object-writer.ts'
import { createRandom, type Random } from './random.ts'
import type { ModelShape } from './profiles.ts'
import { boxes, type Placement, type Shape, surface, turned } from './shape.ts'

/** The change of one element in one version. */
export type ElementChange = 'none' | 'property' | 'geometry'

export interface ElementOptions {
  readonly seed: number
  /** The element's number in the model. */
  readonly index: number
  /** Which of the model's versions is written; only changed elements depend on it. */
  readonly revision: number
  readonly change: ElementChange
  readonly closure: boolean
  readonly shape: ModelShape
  /** The `applicationId` of its level: levels can be renamed without touching the elements on them. */
  readonly level: string
}

/** The most objects that one element writes, those included that it shares with others. */
export const ELEMENT_OBJECTS_MAX = 22

interface Kind {
  readonly category: string
  readonly families: readonly string[]
  readonly meshes: number
  readonly boxes: number
}

const KINDS: readonly Kind[] = [
  {
    category: 'Wall',
    families: [
      'Basic Wall:Exterior - Brick on CMU',
      'Basic Wall:Interior - 123mm Partition',
      'Trennwand:Ständerwand 125mm',
    ],
    meshes: 1,
    boxes: 3,
  },
  {
    category: 'Window',
    families: ['M_Fixed:0915 x 1830mm', 'M_Fixed:0406 x 0610mm', 'Fenêtre:Châssis fixe 1200 x 1500mm'],
    meshes: 3,
    boxes: 2,
  },
  {
    category: 'Door',
    families: ['M_Single-Flush:0915 x 2134mm', 'M_Double-Glass:1830 x 2134mm', 'Tür:Stahlzarge 1010 x 2135mm'],
    meshes: 3,
    boxes: 2,
  },
  { category: 'Slab', families: ['Floor:Generic 150mm', 'Floor:Wood Joist 10" - Wood Finish'], meshes: 1, boxes: 1 },
  {
    category: 'Column',
    families: ['M_Concrete-Rectangular-Column:300 x 450mm', 'M_W-Wide Flange-Column:W250X73'],
    meshes: 1,
    boxes: 2,
  },
  {
    category: 'FurnishingElement',
    families: ['M_Chair-Breuer:M_Chair-Breuer', 'M_Desk:1525 x 762mm', 'M_Table-Round:0915mm Diameter'],
    meshes: 3,
    boxes: 3,
  },
  {
    category: 'FlowSegment',
    families: ['Pipe Types:Standard', 'Round Duct:Taps', 'Rohr:Edelstahl DN 50'],
    meshes: 2,
    boxes: 2,
  },
]

interface Material {
  readonly name: string
  /** Red, green and blue. */
  readonly colour: number
}

const MATERIALS: readonly Material[] = [
  { name: 'Brick, Common', colour: 0xb5_52_3b },
  { name: 'Concrete, Cast-in-Place', colour: 0x8d_8f_8c },
  { name: 'Glass', colour: 0x7f_b7_cf },
  { name: 'Aluminium', colour: 0xa5_ab_b3 },
  { name: 'Gypsum Wall Board', colour: 0xd9_d4_c7 },
  { name: 'Oak', colour: 0xb8_8a_4f },
  { name: 'Beton C30/37', colour: 0x77_79_7b },
  { name: 'Édelstahl', colour: 0x6d_83_99 },
]
const OPAQUE = 0xff_00_00_00
const FIRE_RATINGS: readonly string[] = ['EI 30', 'EI 60', 'EI 90', 'EI 120']
/** One wall in this many has no fire rating: the parameter is empty, or missing. */
const UNRATED_ONE_IN = 8
const FIRE_RATING_STREAM = 11
const SHARING_STREAM = 13
/** Elements of a kind whose geometry others share. */
const PROTOTYPES = 16
const PHASES: readonly string[] = ['New Construction', 'Existing', 'Phase 2']
const COMMON_PARAMETERS: readonly string[] = [
  'Is External',
  'Load Bearing',
  'Moves With Grids',
  'Enable Analytical Model',
  'Extend To Structure',
  'Reference',
  'Export To Analysis As',
  'Has Association',
  'Is Demountable',
  'Top Is Attached',
  'Base Is Attached',
  'Related To Mass',
]
const GUID_DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_$'

/** Writes one element of the building with all that it needs, and returns it. */
export function writeElement(writer: ObjectWriter, options: ElementOptions): Written {
  const random = createRandom(options.seed, options.index)
  const kind = KINDS[random.below(KINDS.length)]
  const family = random.pick(kind.families)
  const placement = {
    x: (options.index % 40) * 1_350,
    y: Math.floor(options.index / 1_000) * 3_200,
    z: Math.floor((options.index % 1_000) / 40) * 2_150,
  }
  const definition = writer.share(`definition ${family}`, () => writeDefinition(writer, kind, family))
  const meshes = writeMeshes(writer, kind, { ...options, placement }, random)
  const name = `${family}:${300_000 + options.index}`
  const fields =
    `"speckle_type":"Objects.Data.DataObject","category":"${kind.category}","applicationId":"${guid(random)}","name":${JSON.stringify(name)},"units":"m",` +
    `"parameters":{${parameters(options, kind, family, name, random)}},"definition":${reference(definition)},"displayValue":${references(meshes)}`
  return writer.write(fields, [definition, ...meshes], options.closure)
}

/** Meshes of its own, or those of a prototype that many elements have. */
function writeMeshes(
  writer: ObjectWriter,
  kind: Kind,
  options: ElementOptions & { readonly placement: Placement },
  random: Random,
): readonly Written[] {
  const length = kind.meshes + random.below(2)
  const { seed, shape } = options
  const choice = createRandom(seed, options.index, SHARING_STREAM)
  if (choice.below(1_000) >= shape.sharing * 1_000)
    return Array.from({ length }, (_, mesh) => writeMesh(writer, kind, { ...options, mesh }))
  const index = KINDS.indexOf(kind) * PROTOTYPES + choice.below(PROTOTYPES)
  const prototype = { ...options, index: -1 - index, change: 'none', placement: { x: 0, y: 0, z: 0 } } as const
  return Array.from({ length }, (_, mesh) =>
    writer.share(`prototype ${index} ${mesh}`, () => writeMesh(writer, kind, { ...prototype, mesh })),
  )
}

/** A separate note; models of an exact size are filled up with them. */
export function writeNote(writer: ObjectWriter, seed: number, index: number): Written {
  const random = createRandom(seed, index, 7)
  const fields = `"speckle_type":"Objects.Other.Note","applicationId":"${guid(random)}","value":"Note ${index}"`
  return writer.write(fields)
}

function writeDefinition(writer: ObjectWriter, kind: Kind, family: string): Written {
  const [familyName, typeName] = family.split(':')
  const fields =
    `"speckle_type":"Objects.Other.TypeDefinition","category":"${kind.category}","family":${JSON.stringify(familyName)},"type":${JSON.stringify(typeName)},` +
    `"parameters":{${[parameter('Manufacturer', 'Stowage Bau', null), parameter('Assembly Code', `C10${family.length}`, null), parameter('Cost', family.length * 12.5, 'EUR')].join(',')}}`
  return writer.write(fields)
}

function writeMesh(
  writer: ObjectWriter,
  kind: Kind,
  options: ElementOptions & { readonly mesh: number; readonly placement: Placement },
): Written {
  const random = createRandom(options.seed, options.index, options.mesh + 1)
  const shape = shapeOf(kind, movedInVersion(options), options.shape, random)
  const topology = writer.share(shape.topology, () => writeChunk(writer, shape.faces()))
  const chunks = shape.vertices.map((numbers) => writeChunk(writer, numbers))
  const material = renderMaterial(random.pick(MATERIALS))
  const fields =
    `"speckle_type":"Objects.Geometry.Mesh","units":"m","colors":[],"textureCoordinates":[],"area":${random.below(90_000) / 1_000},"volume":${random.below(9_000) / 1_000},` +
    `"vertices":${references(chunks)},"faces":${references([topology])},"renderMaterial":${material}`
  return writer.write(fields, [...chunks, topology], options.closure)
}

/** A changed geometry is the first mesh, moved by some millimetres. */
function movedInVersion(options: ElementOptions & { readonly mesh: number; readonly placement: Placement }): Placement {
  if (options.change !== 'geometry' || options.mesh !== 0) return options.placement
  return { ...options.placement, x: options.placement.x + 500 + options.revision }
}

/** Mostly boxes; now and then a turned body, one in 4,000 of half a megabyte. */
function shapeOf(kind: Kind, at: Placement, shape: ModelShape, random: Random): Shape {
  if (shape.surfaces > 0 && random.below(1_000) < shape.surfaces * 1_000)
    return surface(shape.surfaceVertices, shape.decimals, at, random)
  if (random.oneIn(4_000)) return turned(260, 72, at, random)
  if (random.oneIn(60)) return turned(12 + 12 * random.below(3), 24, at, random)
  return boxes(shape.boxes * (1 + random.below(kind.boxes * 2)), at, random)
}

function writeChunk(writer: ObjectWriter, numbers: string): Written {
  return writer.write(`"speckle_type":"Speckle.Core.Models.DataChunk","data":[${numbers}]`)
}

/** Inside the mesh: viewers look for its colour there, and follow no reference to it. */
function renderMaterial({ name, colour }: Material): string {
  return `{"speckle_type":"Objects.Other.RenderMaterial","name":"${name}","diffuse":${(OPAQUE | colour) >> 0},"opacity":1,"metalness":0,"roughness":0.85}`
}

function parameters(options: ElementOptions, kind: Kind, family: string, name: string, random: Random): string {
  const mark = options.change === 'property' ? `${options.index}, revision ${options.revision}` : String(options.index)
  const most = [
    parameter('Name', name, null),
    parameter('Mark', mark, null),
    parameter('Base Constraint', options.level, null),
    parameter('Category', kind.category, null),
    parameter('GlobalId', guid(random), null),
    parameter('ObjectType', family, null),
    parameter('expressID', 10_000 + options.index * 7, null),
    parameter('OwnerHistory', 42, null),
    parameter('Description', null, null),
    parameter('ObjectPlacement', 35_000 + options.index * 3, null),
    parameter('Representation', 13_000 + options.index * 5, null),
    parameter('Tag', String(300_000 + options.index), null),
    parameter('Base Offset', random.below(400) / 1_000, 'm'),
    parameter('Unconnected Height', random.below(4_000) / 1_000, 'm'),
    parameter('Length', random.below(12_000) / 1_000, 'm'),
    parameter('Area', random.below(48_000) / 1_000, 'm²'),
    parameter('Volume', random.below(9_000) / 1_000, 'm³'),
    parameter('Phase Created', random.pick(PHASES), null),
    parameter('Structural', random.oneIn(3), null),
    parameter('Room Bounding', random.oneIn(2), null),
  ].slice(0, options.shape.parameters)
  for (let at = most.length; at < options.shape.parameters; at++) most.push(commonParameter(at, random))
  return [...most, ...(kind.category === 'Wall' ? fireRating(options) : [])].join(',')
}

/** One of the many parameters that hold the same on most elements. */
function commonParameter(at: number, random: Random): string {
  const name = COMMON_PARAMETERS[at % COMMON_PARAMETERS.length]
  const numbered = at < 2 * COMMON_PARAMETERS.length ? name : `${name} ${at}`
  return parameter(numbered, random.oneIn(8), null)
}

function fireRating({ seed, index }: ElementOptions): readonly string[] {
  const random = createRandom(seed, index, FIRE_RATING_STREAM)
  const rating = random.pick(FIRE_RATINGS)
  if (!random.oneIn(UNRATED_ONE_IN)) return [parameter('Fire Rating', rating, null)]
  return random.oneIn(2) ? [parameter('Fire Rating', null, null)] : []
}

function parameter(name: string, value: string | number | boolean | null, units: string | null): string {
  return `"${name}":{"name":"${name}","value":${JSON.stringify(value)},"units":${units === null ? 'null' : `"${units}"`}}`
}

/** A compressed GUID as building models have it: 22 digits of base 64. */
function guid(random: Random): string {
  let digits = ''
  for (let digit = 0; digit < 22; digit++) digits += GUID_DIGITS[random.below(64)]
  return digits
}
