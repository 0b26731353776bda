/** The shape of a generated model; all of it can be chosen, and a profile chooses all of it. */
export interface ModelShape {
  /** Parameters of an element: the size of those objects. Real elements have 10 to 60. */
  readonly parameters: number
  /** Elements in a group: the width of the graph. */
  readonly groupElements: number
  /** Collections between a group and its level, one below the other: the depth of the graph. */
  readonly nesting: number
  /** The share of elements that have the geometry of an earlier one. */
  readonly sharing: number
  /** The share of meshes that are scanned surfaces, whose coordinates repeat nothing; the others consist of boxes. */
  readonly surfaces: number
  /** Vertices of a surface. */
  readonly surfaceVertices: number
  /** Boxes in a mesh, as a factor: the size of geometry chunks. */
  readonly boxes: number
  /** Digits behind the decimal point of the coordinates of surfaces, 3 to 15: more digits compress less. */
  readonly decimals: number
}

export type ProfileName = 'building' | 'geometry'

/**
 * `building` compresses like buildings that designers publish, 7 to 9 : 1 with `gzip -6` of the lines; `geometry` like
 * scans and analysis meshes, 2.5 : 1.
 */
export const PROFILES: Readonly<Record<ProfileName, ModelShape>> = {
  building: {
    parameters: 40,
    groupElements: 40,
    nesting: 0,
    sharing: 0,
    surfaces: 0,
    surfaceVertices: 40,
    boxes: 2,
    decimals: 3,
  },
  geometry: {
    parameters: 4,
    groupElements: 40,
    nesting: 0,
    sharing: 0,
    surfaces: 1,
    surfaceVertices: 75,
    boxes: 1,
    decimals: 15,
  },
}
