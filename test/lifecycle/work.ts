/** What a worker is told to do. */
export interface Work {
  readonly kind: 'export' | 'import' | 'mirror' | 'backup'
  readonly from: string
  readonly to: string
  readonly project: string
  readonly copy: string
  readonly path: string
}
