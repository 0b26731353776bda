/** The descriptor of the pipe that stays open as long as the server lives. */
export const GATE_FD = 3
/** Of the channel by which the bridge's listener is handed out. */
export const BRIDGE_FD = 4

/** Waits until its record is durable; a server that died before that has started nothing. */
const AWAIT_GO = `IFS= read -r go <&${GATE_FD} || exit 125`

/**
 * For a shell that becomes the command in its parameters: outside of namespaces a second shell in the group ends the
 * group when the server is gone, since a function that holds its event loop does not notice.
 */
export const GROUP_SCRIPT: string = `${AWAIT_GO}
(
  trap '' TERM INT HUP
  exec >/dev/null 2>&1 </dev/null
  while read -r _ <&${GATE_FD}; do :; done
  kill -KILL 0
) &
exec "$@" ${GATE_FD}<&-`

/** Inside of namespaces the system ends everything with the server. */
export const INSIDE_SCRIPT: string = `${AWAIT_GO}
exec "$@" ${GATE_FD}<&-`

/** The same with a bridge: its first parameters are node, \`LISTEN_CODE\` and the port. */
export const BRIDGE_SCRIPT: string = `${AWAIT_GO}
NODE_OPTIONS= NODE_EXTRA_CA_CERTS= "$1" -e "$2" "$3" || exit 126
shift 3
unset NODE_CHANNEL_FD NODE_CHANNEL_SERIALIZATION_MODE
exec "$@" ${GATE_FD}<&- ${BRIDGE_FD}<&-`

/** Listens in the function's network, hands the listener to the server, and is gone before the function begins. */
export const LISTEN_CODE: string = `const server = require('node:net').createServer({ allowHalfOpen: true })
server.listen(Number(process.argv[1]), '127.0.0.1', () => process.send('listening', server, () => process.exit(0)))`
