import EventLoop
import Requesting
import Upstream

/// The client of a proxy that runs, for the commands that ask through one. It waits longer than the proxy itself waits for an origin.
///
/// - Parameters:
///   - fields: for each request.
///   - https: how https URLs are asked for.
func proxyClient(
    _ addresses: [SocketAddress], _ fields: [(name: String, value: String)], https: Client.Way.Tunnelling = .none
) throws(ClientError) -> Client {
    try Client(.proxy(addresses, own: fields.map { RequestForm.Field($0.name, $0.value) }, https: https))
}

/// What went wrong between a command and the proxy.
func textOfProxyError(_ error: ClientError) -> String {
    switch error {
    case .cannotConnect: "the proxy cannot be reached: \(error)"
    case .timedOut(.connecting): "the proxy cannot be reached: it does not accept the connection"
    case .timedOut: "no answer in time"
    default: "\(error)"
    }
}
