package import Framing
package import Message

/// Why a request cannot be sent as it is.
package enum RequestFault: Error, Equatable, Sendable {
    /// The URL is not an absolute http or https URL without user information.
    case url(String)
    /// The method is not a token, or is CONNECT.
    case method(String)
    /// The name is not a token, or the value has a control character.
    case field(String)
    /// The client itself sends this field: it says where the request ends, or belongs to the connection.
    case reservedField(String)

    package var reason: String {
        switch self {
        case .url(let text): "\"\(text)\" is not an absolute URL"
        case .method(let text): "\"\(text)\" is not a method that can be sent"
        case .field(let name): "the field \"\(name)\" is not valid"
        case .reservedField(let name): "\(name) is set by the client"
        }
    }
}

/// A request that a client sends, in the form of its head (RFC 9112 §3).
package struct RequestForm: Sendable, Equatable {
    /// How the request-target is written (RFC 9112 §3.2).
    package enum TargetForm: Sendable {
        /// The server is asked itself.
        case origin
        /// A proxy is asked, https included: Larder opens the TLS connection.
        case absolute
    }

    package struct Field: Sendable, Equatable {
        package var name: [UInt8]
        package var value: [UInt8]

        package init(_ name: String, _ value: String) {
            self.name = Array(name.utf8)
            self.value = Array(value.utf8)
        }
    }

    package let method: Method
    package let methodText: [UInt8]
    package let target: TargetURI
    package let fields: [Field]

    /// Checks what the program gave.
    package init(method: String, url: String, fields: [Field]) throws(RequestFault) {
        let token = Array(method.utf8)
        guard !token.isEmpty, token.allSatisfy(isTchar), method != "CONNECT" else { throw .method(method) }
        guard let target = TargetURI(Array(url.utf8)) else { throw .url(url) }
        for field in fields {
            let name = String(decoding: field.name, as: UTF8.self)
            guard !field.name.isEmpty, field.name.allSatisfy(isTchar), field.value.allSatisfy(isFieldContent) else {
                throw .field(name)
            }
            guard !RequestForm.isReserved(field.name) else { throw .reservedField(name) }
        }
        self.init(method: token, target: target, fields: fields)
    }

    private init(method: [UInt8], target: TargetURI, fields: [Field]) {
        methodText = method
        self.method = Method.allCases.first { bytes(of: $0.text) == method } ?? .other
        self.target = target
        self.fields = fields
    }

    /// Names in lower case that change where a message ends, or that hold for one connection only (RFC 9110 §7.6.1).
    private static let reserved: Set<String> = [
        "host", "content-length", "transfer-encoding", "connection", "proxy-connection", "keep-alive", "te", "trailer",
        "upgrade", "expect", "http2-settings",
    ]

    /// Whether programs may not set the field.
    package static func isReserved(_ name: some Collection<UInt8>) -> Bool {
        reserved.contains(String(decoding: name.map(asciiLowercased), as: UTF8.self))
    }

    package func value(of name: String) -> [UInt8]? {
        fields.first { equalsIgnoringCase($0.name, Array(name.utf8)) }?.value
    }

    /// The head that asks a proxy for a tunnel to the server (RFC 9110 §9.3.6).
    package func connectHead(own: [Field]) -> [UInt8] {
        let authority = Array("\(target.host):\(target.port)".utf8)
        var bytes: [UInt8] = []
        appendRequestLine("CONNECT".utf8, authority, to: &bytes)
        appendFieldLine(.host, authority, to: &bytes)
        for field in own { appendFieldLine(field.name, field.value, to: &bytes) }
        bytes.append("\r\n")
        return bytes
    }

    /// The head as bytes.
    ///
    /// - Parameters:
    ///   - body: how the end of the body is told: `.none`, a length or chunks.
    ///   - own: further fields of the client, such as credentials for a proxy. A field of the request replaces one with the same name.
    package func head(_ form: TargetForm, body: BodyLength, own: [Field]) -> [UInt8] {
        var bytes: [UInt8] = []
        switch form {
        case .origin: appendRequestLine(methodText, target.pathAndQuery, to: &bytes)
        case .absolute: appendRequestLine(methodText, target.normalised, to: &bytes)
        }
        let port = target.port == target.scheme.defaultPort ? "" : ":\(target.port)"
        appendFieldLine(.host, "\(target.host)\(port)".utf8, to: &bytes)
        for field in own where !fields.contains(where: { equalsIgnoringCase($0.name, field.name) }) {
            appendFieldLine(field.name, field.value, to: &bytes)
        }
        for field in fields { appendFieldLine(field.name, field.value, to: &bytes) }
        switch body {
        case .none:
            // Without it some servers wait for a body (RFC 9110 §8.6).
            if method == .post || method == .put || method == .patch {
                appendFieldLine(.contentLength, "0".utf8, to: &bytes)
            }
        case .length(let count): appendFieldLine(.contentLength, "\(count)".utf8, to: &bytes)
        case .chunked: appendFieldLine(.transferEncoding, "chunked".utf8, to: &bytes)
        case .untilClose, .tunnel: preconditionFailure("a request has a length or chunks (RFC 9112 §6.3)")
        }
        bytes.append("\r\n")
        return bytes
    }
}

extension RequestForm {
    package enum Redirection: Equatable, Sendable {
        /// The answer is no redirect that can be followed.
        case none
        /// - Parameter keepsBody: the body is sent again; the method is the same.
        case follow(RequestForm, keepsBody: Bool)
    }

    /// Where an answer leads (RFC 9110 §15.4).
    ///
    /// 303, and 301 and 302 to a POST, become a GET without a body. If the origin changes, what proves who the client is stays behind.
    package func redirected(status: UInt16, location: ArraySlice<UInt8>?) -> Redirection {
        guard [301, 302, 303, 307, 308].contains(status), let location, let next = target.resolving(location) else {
            return .none
        }
        let becomesGet = status == 303 && method != .head || (status == 301 || status == 302) && method == .post
        let keepsBody = status == 307 || status == 308 || !becomesGet && status != 303
        let isSameOrigin = next.scheme == target.scheme && next.host == target.host && next.port == target.port
        let kept = fields.filter { field in
            (isSameOrigin || !RequestForm.isSecret(field.name)) && (keepsBody || !RequestForm.describesBody(field.name))
        }
        return .follow(
            RequestForm(method: becomesGet ? bytes(of: "GET") : methodText, target: next, fields: kept),
            keepsBody: keepsBody)
    }

    private static func isSecret(_ name: [UInt8]) -> Bool {
        ["authorization", "cookie"].contains { equalsIgnoringCase(name, Array($0.utf8)) }
    }

    private static func describesBody(_ name: [UInt8]) -> Bool {
        ["content-type", "content-encoding", "content-language", "content-location", "digest", "content-digest"]
            .contains { equalsIgnoringCase(name, Array($0.utf8)) }
    }
}

/// Whether a request that failed on a connection may be sent again on a new one.
///
/// A server may close an idle connection at any time, so the first use of a connection that was kept proves nothing (RFC 9112 §9.3.1). Only
/// a request that has the same effect twice is repeated, and only if no byte of an answer has come.
package func mayRepeat(_ method: Method, isReused: Bool, hasReceived: Bool, canResendBody: Bool) -> Bool {
    isReused && !hasReceived && method.isIdempotent && canResendBody
}
