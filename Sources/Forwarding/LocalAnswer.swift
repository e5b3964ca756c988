package import ClientSetup
import Framing
package import Message
package import Transaction

/// An answer of Larder's own, before any rule and the cache: to requests that are for the proxy itself, and to loops.
package enum LocalAnswer {
    case refusal(Refusal)
    case response(status: UInt16, fields: Fields, body: [UInt8])
    /// A page that sets up clients.
    case page(PageResponse)

    /// Returns nil if the request is to be forwarded.
    ///
    /// - Parameters:
    ///   - hasDestination: the host of the target is a valid name or address.
    ///   - instance: tells this Larder from others in `Via`.
    ///   - pages: what the proxy port answers to requests in origin-form.
    package init?(
        _ request: ReceivedRequest, hasDestination: Bool, instance: @autoclosure () -> Instance,
        pages: @autoclosure () -> Pages
    ) {
        if request.head.fields.present.contains(.via), LocalAnswer.isLoop(request.fields, instance: instance()) {
            self = .refusal(.loopDetected)
            return
        }
        switch request.head.target.form {
        case .origin:
            self = PageResponse(request, pages: pages()).map { .page($0) } ?? .refusal(.notAProxyRequest)
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
            // The bytes behind a CONNECT belong to the tunnel (RFC 9110 §9.3.6). With a body it is unclear where the tunnel begins.
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

    /// Whether `Via` names this instance, so that the request has been here before (RFC 9110 §7.6.3).
    private static func isLoop(_ fields: Fields, instance: Instance) -> Bool {
        fields.all(.via).contains { $0.contains(instance.name) }
    }

    /// Whether the request has `Max-Forwards: 0` (RFC 9110 §7.6.2).
    private static func isLastHop(_ request: ReceivedRequest) -> Bool {
        request.fields.first(.maxForwards).flatMap { parseDecimal($0) } == 0
    }

    private static var options: LocalAnswer {
        var fields = Fields()
        fields.append(.allow, "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS, TRACE, CONNECT")
        return .response(status: 200, fields: fields, body: [])
    }

    /// The answer to TRACE: the request as received, without fields that may hold a secret (RFC 9110 §9.3.8).
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

    /// Appends head and body of a response. None of the methods that are answered here is HEAD.
    package static func appendResponse(
        status: UInt16, fields: Fields, body: [UInt8], persists: Bool, minorVersion: UInt8,
        date: WallTime, to out: inout [UInt8]
    ) {
        appendHead(
            status: status, fields: fields, length: body.count, persists: persists, minorVersion: minorVersion,
            date: date, to: &out)
        out.append(contentsOf: body)
    }

    /// Appends the head of a response.
    ///
    /// - Parameter length: the length of the body in bytes. Nil for a 304, which has none.
    package static func appendHead(
        status: UInt16, fields: Fields, length: Int?, persists: Bool, minorVersion: UInt8, date: WallTime,
        to out: inout [UInt8]
    ) {
        appendStatusLine(status, reason: nil, to: &out)
        out.append("Date: ")
        appendHTTPDate(date, to: &out)
        out.append("\r\nCache-Status: larder; detail=local\r\n")
        appendFieldLines(fields, to: &out)
        if let length { HeadWriter.append(.contentLength, length, to: &out) }
        HeadWriter.appendConnection(persists: persists, minorVersion: minorVersion, to: &out)
    }
}
