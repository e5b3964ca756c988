import Framing
package import Message
package import Transaction

/// What Larder answers itself, before any room is asked: requests that are for the proxy, and loops.
package enum LocalAnswer {
    case refusal(Refusal)
    case response(status: UInt16, fields: Fields, body: [UInt8])

    /// Nil where the request is to be forwarded.
    package init?(_ request: ReceivedRequest, hasDestination: Bool, instance: [UInt8]) {
        if LocalAnswer.isLoop(request.fields, instance: instance) {
            self = .refusal(.loopDetected)
            return
        }
        switch request.head.target.form {
        case .origin:
            self = .refusal(.notAProxyRequest)
            return
        case .asterisk:
            self = LocalAnswer.options
            return
        case .absolute, .authority:
            break
        }
        if !hasDestination {
            self = .refusal(.hostInvalid)
            return
        }
        switch request.method {
        case .connect
        where request.head.fields.present.contains(.contentLength)
            || request.head.fields.present.contains(.transferEncoding):
            // What follows a CONNECT is the tunnel's (RFC 9110 §9.3.6); a body in between could be taken for either.
            self = .refusal(.malformedRequestBody)
        case .trace where request.hasBody:
            // RFC 9110 §9.3.8: a client MUST NOT send content in a TRACE request.
            self = .refusal(.malformedRequestBody)
        case .trace where LocalAnswer.isLastHop(request):
            self = LocalAnswer.trace(request)
        case .options where LocalAnswer.isLastHop(request):
            self = LocalAnswer.options
        default:
            return nil
        }
    }

    /// Our own pseudonym with our instance's identifier in `Via`: the request came from here (RFC 9110 §7.6.3).
    private static func isLoop(_ fields: Fields, instance: [UInt8]) -> Bool {
        fields.all(.via).contains { $0.contains(instance) }
    }

    /// `Max-Forwards: 0` (RFC 9110 §7.6.2).
    private static func isLastHop(_ request: ReceivedRequest) -> Bool {
        request.fields.first(.maxForwards).flatMap { parseDecimal($0) } == 0
    }

    private static var options: LocalAnswer {
        var fields = Fields()
        fields.append(.allow, "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS, TRACE, CONNECT")
        return .response(status: 200, fields: fields, body: [])
    }

    /// The request as it arrived, without what could be a secret (RFC 9110 §9.3.8).
    private static func trace(_ request: ReceivedRequest) -> LocalAnswer {
        var body = Array(request.bytes[request.head.methodRange.lowerBound..<request.head.targetRange.upperBound])
        HeadWriter.append(request.head.minorVersion == 0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n", to: &body)
        let fields = request.fields
        for line in fields.lines {
            switch line.name {
            case .authorization, .proxyAuthorization, .cookie: continue
            default: appendFieldLine(fields.name(of: line), fields.value(of: line), to: &body)
            }
        }
        HeadWriter.append("\r\n", to: &body)
        var responseFields = Fields()
        responseFields.append(.contentType, "message/http")
        return .response(status: 200, fields: responseFields, body: body)
    }
}
