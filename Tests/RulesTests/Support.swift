import Message
import Rules

func ip(_ text: String) -> IPAddress {
    guard let address = IPAddress(strict: text.utf8) else { preconditionFailure("\(text) is no address") }
    return address
}

/// A request for `GET http://a.example/`, but for what is named.
func request(
    _ host: String = "a.example", port: UInt16 = 80, method: Method = .get, methodText: String? = nil,
    path: String? = "/", user: String? = nil, client: String? = "127.0.0.1"
) -> RuleRequest {
    guard let destination = DestinationHost(host.utf8) else { preconditionFailure("\(host) is no host") }
    return RuleRequest(
        client: client.map(ip), identity: user.map { Identity(name: $0, scheme: .basic) }, method: method,
        methodText: methodText, destination: destination,
        port: port, isTunnel: method == .connect, pathAndQuery: path.map { ArraySlice($0.utf8) })
}
