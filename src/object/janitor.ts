/** Of all servers over one storage, one does the work that one of them should. */
export interface Janitor {
  /**
   * What commits of such work expect: they fail when another server has taken over. `undefined` on a server that is not
   * to do it.
   */
  readonly fence: { readonly key: Uint8Array; readonly value: Uint8Array | undefined } | undefined
}
