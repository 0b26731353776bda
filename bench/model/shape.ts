import type { Random } from './random.ts'

/** The place of a mesh, in whole millimetres. */
export interface Placement {
  readonly x: number
  readonly y: number
  readonly z: number
}

/**
 * A mesh as JSON number lists without brackets. Meshes of one topology have equal faces, which are made only when they
 * are first met.
 */
export interface Shape {
  readonly vertices: readonly string[]
  readonly topology: string
  faces(): string
}

/** Numbers in one chunk of vertices at most, as clients that cut large arrays do it. */
const CHUNK_NUMBERS_MAX = 31_250

/** The corners of a box, four a face, as indices of (x, y, z) among its two extremes on each axis. */
const BOX_CORNERS: readonly (readonly [number, number, number])[] = [
  [0, 0, 0],
  [0, 1, 0],
  [1, 1, 0],
  [1, 0, 0],
  [0, 0, 1],
  [1, 0, 1],
  [1, 1, 1],
  [0, 1, 1],
  [0, 0, 0],
  [1, 0, 0],
  [1, 0, 1],
  [0, 0, 1],
  [0, 1, 0],
  [0, 1, 1],
  [1, 1, 1],
  [1, 1, 0],
  [0, 0, 0],
  [0, 0, 1],
  [0, 1, 1],
  [0, 1, 0],
  [1, 0, 0],
  [1, 1, 0],
  [1, 1, 1],
  [1, 0, 1],
]

/** `count` boxes in one mesh: a wall with its openings, a frame, a sill. */
export function boxes(count: number, at: Placement, random: Random): Shape {
  const parts: string[] = []
  for (let box = 0; box < count; box++) {
    const left = at.x + random.below(900)
    const bottom = at.y + random.below(400)
    const front = at.z + random.below(900)
    const xs = [metres(left), metres(left + 50 + random.below(4_000))]
    const ys = [metres(bottom), metres(bottom + 20 + random.below(3_000))]
    const zs = [metres(front), metres(front + 10 + random.below(400))]
    for (const [x, y, z] of BOX_CORNERS) parts.push(`${xs[x]},${ys[y]},${zs[z]}`)
  }
  return { vertices: [parts.join(',')], topology: `boxes ${count}`, faces: () => boxFaces(count) }
}

/**
 * A scanned surface of triangles: every coordinate has its own digits. `decimals` of them stand behind the point, 3 or
 * more.
 */
export function surface(vertices: number, decimals: number, at: Placement, random: Random): Shape {
  const chunks: string[] = []
  let numbers: string[] = []
  for (let vertex = 0; vertex < vertices; vertex++) {
    for (const from of [at.x, at.y, at.z])
      numbers.push(((from + random.below(1_000)) / 1_000).toFixed(3) + digits(decimals - 3, random))
    if (numbers.length + 3 > CHUNK_NUMBERS_MAX || vertex === vertices - 1) {
      chunks.push(numbers.join(','))
      numbers = []
    }
  }
  return { vertices: chunks, topology: `surface ${vertices}`, faces: () => stripFaces(vertices) }
}

/** A surface of revolution: tables, sinks, handrails. Large ones are cut into several chunks. */
export function turned(rings: number, segments: number, at: Placement, random: Random): Shape {
  const radiusBase = 40 + random.below(600)
  const heightStep = 5 + random.below(60)
  const chunks: string[] = []
  let numbers: string[] = []
  for (let ring = 0; ring < rings; ring++) {
    const radius = radiusBase + random.below(80)
    const y = metres(at.y + ring * heightStep)
    for (let segment = 0; segment < segments; segment++) {
      const angle = (2 * Math.PI * segment) / segments
      numbers.push(
        metres(at.x + Math.round(radius * Math.cos(angle))),
        y,
        metres(at.z + Math.round(radius * Math.sin(angle))),
      )
    }
    if (numbers.length + segments * 3 > CHUNK_NUMBERS_MAX || ring === rings - 1) {
      chunks.push(numbers.join(','))
      numbers = []
    }
  }
  return { vertices: chunks, topology: `turned ${rings} ${segments}`, faces: () => turnedFaces(rings, segments) }
}

function stripFaces(vertices: number): string {
  return Array.from({ length: Math.max(0, vertices - 2) }, (_, face) => `3,${face},${face + 1},${face + 2}`).join(',')
}

/** Random digits, the last one not 0: a number in JSON has no zeros at its end. */
function digits(count: number, random: Random): string {
  let text = ''
  while (text.length < count) text += String(1_000_000 + random.below(1_000_000)).slice(1)
  return text.slice(0, count).replace(/0$/, '5')
}

function boxFaces(count: number): string {
  return Array.from(
    { length: count * 6 },
    (_, face) => `4,${face * 4},${face * 4 + 1},${face * 4 + 2},${face * 4 + 3}`,
  ).join(',')
}

function turnedFaces(rings: number, segments: number): string {
  const faces: string[] = []
  for (let ring = 1; ring < rings; ring++) {
    for (let segment = 0; segment < segments; segment++) {
      const next = (segment + 1) % segments
      faces.push(
        `4,${(ring - 1) * segments + segment},${(ring - 1) * segments + next},${ring * segments + next},${ring * segments + segment}`,
      )
    }
  }
  return faces.join(',')
}

function metres(millimetres: number): string {
  return String(millimetres / 1000)
}
