import Framing
package import Message

/// Where redirects that Larder followed led, as origins and clients see it (RFC 9110 §15.4).
package enum Redirected {
    /// What of the request before goes on.
    package struct Changes {
        /// The request becomes a GET.
        package let becomesGet: Bool
        /// The next origin is another one.
        package let isOtherOrigin: Bool
        /// The name of a field that is for the origin before alone. Empty: there is none besides those that always are.
        package let ownField: [UInt8]

        package init(becomesGet: Bool, isOtherOrigin: Bool, ownField: [UInt8] = []) {
            self.becomesGet = becomesGet
            self.isOtherOrigin = isOtherOrigin
            self.ownField = ownField
        }
    }

    /// The head of the next request, as a client would have sent it to Larder: without content, and with the target in absolute-form.
    package static func request(after request: ReceivedRequest, to target: TargetURI, _ changes: Changes) -> [UInt8] {
        let fields = request.fields
        let uri = target.normalised
        var head: [UInt8] = []
        head.reserveCapacity(request.bytes.count + uri.count * 2)
        if changes.becomesGet { head.append("GET") } else { head.append(contentsOf: request.methodText) }
        head.append(0x20)
        head.append(contentsOf: uri)
        HeadWriter.append(request.head.minorVersion == 0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n", to: &head)
        // The authority, between "//" and the path.
        let authority = uri.drop { $0 != 0x2F }.dropFirst(2).prefix { $0 != 0x2F }
        appendFieldLine(.host, authority, to: &head)
        for line in fields.lines where isKept(line, request, changes) {
            appendFieldLine(fields.name(of: line), fields.value(of: line), to: &head)
        }
        HeadWriter.append("\r\n", to: &head)
        return head
    }

    private static func isKept(_ line: FieldLine, _ request: ReceivedRequest, _ changes: Changes) -> Bool {
        switch line.name {
        case .host, .expect: return false
        // A later date than that of another resource says nothing about it: `/latest` may lead back to an older file.
        case .ifModifiedSince: return false
        case .authorization, .cookie: if changes.isOtherOrigin { return false }
        // For Larder itself, which heeds it at each request.
        case .larderPolicy: return true
        case .range, .ifRange, .ifMatch, .ifNoneMatch, .ifUnmodifiedSince, .lastModified:
            if changes.becomesGet { return false }
        default: break
        }
        let name = request.fields.name(of: line)
        if changes.becomesGet, describesContent(name) { return false }
        if changes.isOtherOrigin, !changes.ownField.isEmpty, equalsIgnoringCase(changes.ownField[...], name) {
            return false
        }
        return ForwardedHead.isEndToEnd(line, of: request.fields, request.options)
    }

    /// Whether a field of a request is about its content (RFC 9110 §15.4, RFC 9530).
    private static func describesContent(_ name: ArraySlice<UInt8>) -> Bool {
        equalsIgnoringCase(name.prefix(8), "content-") || equalsIgnoringCase(name, "digest")
            || equalsIgnoringCase(name, "repr-digest")
    }

    /// Whether a field of a response is about the origin that sent it, beyond this response.
    private static func isForOrigin(_ line: FieldLine, of fields: Fields) -> Bool {
        switch line.name {
        case .setCookie, .altSvc: return true
        case .other:
            let name = fields.name(of: line)
            return equalsIgnoringCase(name, "strict-transport-security") || equalsIgnoringCase(name, "clear-site-data")
        default: return false
        }
    }

    /// The fields of the client's answer.
    ///
    /// References are made absolute, because the client thinks that the answer comes from the address that it asked for. And the client may
    /// not reuse the answer without asking again: redirects change earlier than what they lead to. Another origin sets no cookies and no
    /// policies for the one that the client named.
    ///
    /// - Parameters:
    ///   - place: where the response comes from.
    ///   - count: how many redirects were followed.
    ///   - isOtherOrigin: it is another origin than the one that the client named.
    package static func fields(_ fields: Fields, from place: TargetURI, count: Int, isOtherOrigin: Bool) -> Fields {
        precondition(count > 0, "nothing was followed")
        var result = isOtherOrigin ? fields.dropping { isForOrigin($0, of: fields) } : fields
        for name in [FieldName.location, .contentLocation] where fields.contains(name) {
            let values = fields.all(name)
            result = result.dropping { $0.name == name }
            for value in values {
                // What resolves to nothing here would resolve to something else there.
                if let absolute = place.absolute(value) { result.append(name, absolute) }
            }
        }
        result.append(.cacheControl, literal: "no-cache")
        result.append(.proxyStatus, "larder; details=\"redirects followed: \(count)\"")
        return result
    }
}
