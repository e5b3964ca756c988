package import Message

/// Where Larder logs in.
package enum LogInPlace: Hashable, Sendable {
    /// With `Authorization`, to what answers 401.
    case origin(Origin)
    /// With `Proxy-Authorization`, to what answers 407, or as SOCKS has it (RFC 1929).
    case proxy(NextProxy.Kind, Endpoint)
}

extension LogInPlace: CustomStringConvertible {
    /// The URL of the origin or of the proxy.
    package var description: String {
        switch self {
        case .origin(let origin): "\(origin)"
        case .proxy(let kind, let endpoint): "\(kind.rawValue)://\(endpoint)"
        }
    }
}

extension LogInPlace {
    /// What names the place in short: host and port of an origin, the URL of a proxy.
    package var shortName: String {
        switch self {
        case .origin(let origin): "\(origin.endpoint)"
        case .proxy: description
        }
    }

    /// The host of the origin or of the proxy.
    package var host: String {
        switch self {
        case .origin(let origin): origin.endpoint.host
        case .proxy(_, let endpoint): endpoint.host
        }
    }

    /// The status with which this place asks for credentials (RFC 9110 §15.5.2, §15.5.8).
    package var challengeStatus: UInt16 {
        switch self {
        case .origin: 401
        case .proxy: 407
        }
    }

    /// The names of the fields with which this place asks for credentials, gets them, and says more about them (RFC 9110 §11.6, §11.7).
    package var fields: (challenge: FieldName, authorization: FieldName) {
        switch self {
        case .origin: (.wwwAuthenticate, .authorization)
        case .proxy: (.proxyAuthenticate, .proxyAuthorization)
        }
    }
}
