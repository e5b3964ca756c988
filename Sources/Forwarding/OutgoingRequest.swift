import Caching
package import Framing
package import Message

/// A request as it goes to an origin (RFC 9110 §7.6): what the client sent, without the fields that end here and with those that
/// a proxy adds.
///
/// It is a value, so that whoever must change it or sign it (credentials for an origin, a next proxy) does so before it becomes
/// bytes. It shares the bytes of the client's head and keeps only what differs: making and serializing one that nobody
/// changes allocates nothing.
package struct OutgoingRequest: Sendable {
    /// What of the request can be sent a second time.
    package enum Replay: Equatable, Sendable {
        /// All of it: there is no content.
        case everything
        /// The head alone. Content that the client has sent is gone once it went to an origin.
        case head
    }

    /// A field that Larder adds. `spelling` is empty where `name` says it.
    private struct AddedField: Sendable {
        let name: FieldName
        let spelling: [UInt8]
        let value: [UInt8]
    }

    private let received: ReceivedRequest
    private let instance: [UInt8]
    private let isUpgrade: Bool
    /// Known fields of the client that do not go out.
    private var dropped: FieldNameSet
    private var conditions: [(FieldName, [UInt8])]
    private var added: [AddedField] = []
    /// Spellings of the client's fields that do not go out and have no `FieldName`.
    private var droppedNames: [[UInt8]] = []
    private var ownTarget: [UInt8]?
    private var ownAuthority: [UInt8]?

    /// How the content is framed on the connection to the origin.
    package let framing: BodyLength

    /// - Parameters:
    ///   - conditions: validators of a stored response, the range that is missing and the coding it is stored in. They take the
    ///     place of the client's own conditions (RFC 9111 §4.3.1) and of its fields of the same names.
    ///   - instance: what tells this Larder from others in `Via`, so that a loop is seen (RFC 9110 §7.6.3).
    package init(_ received: ReceivedRequest, conditions: [(FieldName, [UInt8])], instance: [UInt8]) {
        self.received = received
        self.instance = instance
        self.conditions = conditions
        framing = received.bodyLength
        isUpgrade = received.options.upgrade && ForwardedHead.isUpgrade(received.options, received.fields)
        dropped = OutgoingRequest.writtenAnew
        if received.head.minorVersion == 0 { dropped.insert(.expect) }
        if !conditions.isEmpty { dropped = dropped.union(replacedByConditionalFields) }
        for (name, _) in conditions { dropped.insert(name) }
    }

    /// Known fields that do not go out as the client sent them. Made once: a set is written as an array, which is allocated.
    private static let writtenAnew = ForwardedHead.notForwarded.union([.host, .via, .maxForwards])

    // MARK: what it says

    package var method: Method { received.method }
    package var methodText: ArraySlice<UInt8> { received.methodText }

    /// In origin form, or `*` (RFC 9112 §3.2).
    package var target: [UInt8] {
        var bytes: [UInt8] = []
        appendTarget(to: &bytes)
        return bytes
    }

    /// The value of `Host`: the port stands there only where it is not the scheme's own (RFC 9110 §7.2).
    package var authority: [UInt8] {
        var bytes: [UInt8] = []
        appendAuthority(to: &bytes)
        return bytes
    }

    package var replay: Replay { received.hasBody ? .head : .everything }

    /// Whether it may be sent again by somebody who does not know what became of it (RFC 9110 §9.2.2).
    package var isRepeatable: Bool { method.isIdempotent && replay == .everything }

    /// Calls `body` with name and value of each field line as it will be sent, `Host` first.
    package func forEachField(_ body: (_ name: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) -> Void) {
        var bytes: [UInt8] = []
        appendFields(to: &bytes)
        var start = 0
        while let end = bytes[start...].firstIndex(of: 0x0D), let colon = bytes[start..<end].firstIndex(of: 0x3A) {
            // ": " was written by us, or has been received; white space around a value does not count.
            let value = bytes[(colon + 1)..<end]
            body(bytes[start..<colon], value.first == 0x20 ? value.dropFirst() : value)
            start = end + 2
        }
    }

    // MARK: changes

    package mutating func setTarget(_ target: [UInt8]) {
        precondition(!target.isEmpty, "a request without a target is none")
        ownTarget = target
    }

    package mutating func setAuthority(_ authority: [UInt8]) { ownAuthority = authority }

    /// Removes all lines of that name.
    package mutating func remove(_ name: FieldName) {
        precondition(isChangeable(name), "Larder writes this field itself")
        dropped.insert(name)
        conditions.removeAll { $0.0 == name }
        added.removeAll { $0.name == name }
    }

    /// Removes all lines of a name that has no `FieldName`.
    package mutating func remove(spelling: [UInt8]) {
        droppedNames.append(spelling)
        added.removeAll { equalsIgnoringCase($0.spelling, spelling) }
    }

    /// Puts one line in place of all lines of that name.
    package mutating func set(_ name: FieldName, _ value: [UInt8]) {
        remove(name)
        added.append(AddedField(name: name, spelling: [], value: value))
    }

    /// The same for a name that has no `FieldName`.
    package mutating func set(spelling: [UInt8], _ value: [UInt8]) {
        remove(spelling: spelling)
        added.append(AddedField(name: .other, spelling: spelling, value: value))
    }

    /// What the framing, the target and the way say is not a matter of a field's value.
    private func isChangeable(_ name: FieldName) -> Bool {
        switch name {
        case .other, .host, .via, .maxForwards, .contentLength, .transferEncoding, .connection, .upgrade: false
        default: true
        }
    }

    // MARK: bytes

    /// Appends the whole head with the empty line that ends it.
    package func serialize(into out: inout [UInt8]) {
        out.append(contentsOf: methodText)
        out.append(0x20)
        appendTarget(to: &out)
        out.append(" HTTP/1.1\r\n")
        appendFields(to: &out)
        out.append("\r\n")
    }

    private func appendFields(to out: inout [UInt8]) {
        out.append("Host: ")
        appendAuthority(to: &out)
        out.append("\r\n")
        let fields = received.fields
        appendFieldLines(fields, to: &out) { isKept($0, of: fields) }
        for (name, value) in conditions { appendFieldLine(name, value, to: &out) }
        for field in added {
            if field.name == .other {
                appendFieldLine(field.spelling, field.value, to: &out)
            } else {
                appendFieldLine(field.name, field.value, to: &out)
            }
        }
        appendMaxForwards(fields, to: &out)
        appendVia(fields, to: &out)
        // Of the protocols that a client may ask for, only this one is passed on (`isUpgrade`).
        if isUpgrade { out.append("Connection: Upgrade\r\nUpgrade: websocket\r\n") }
        switch framing {
        case .length(let count): HeadWriter.append(.contentLength, Int(clamping: count), to: &out)
        case .chunked: out.append("Transfer-Encoding: chunked\r\n")
        case .none, .untilClose, .tunnel: break
        }
    }

    private func isKept(_ line: FieldLine, of fields: Fields) -> Bool {
        if dropped.contains(line.name) { return false }
        if line.name == .other {
            let name = fields.name(of: line)
            if ForwardedHead.isForProxies(name) { return false }
            if !droppedNames.isEmpty, droppedNames.contains(where: { equalsIgnoringCase($0, name) }) { return false }
        }
        return received.options.names.isEmpty || !received.options.isNamed(fields.name(of: line))
    }

    private func appendTarget(to out: inout [UInt8]) {
        if let ownTarget { return out.append(contentsOf: ownTarget) }
        let path = received.bytes[received.head.target.pathRange]
        if path.isEmpty {
            // An absolute-form target without a path means "*" for OPTIONS (RFC 9112 §3.2.4).
            out.append(method == .options ? 0x2A : 0x2F)
        } else {
            if path.first == 0x3F { out.append(0x2F) }
            out.append(contentsOf: path)
        }
    }

    private func appendAuthority(to out: inout [UInt8]) {
        if let ownAuthority { return out.append(contentsOf: ownAuthority) }
        let target = received.head.target
        out.append(contentsOf: received.bytes[target.hostRange])
        if target.port != target.scheme.defaultPort {
            out.append(0x3A)
            appendDecimal(UInt64(target.port), to: &out)
        }
    }

    /// `Max-Forwards` counts down for TRACE and OPTIONS; for other methods it passes unchanged (RFC 9110 §7.6.2).
    private func appendMaxForwards(_ fields: Fields, to out: inout [UInt8]) {
        guard let value = fields.first(.maxForwards) else { return }
        guard method == .trace || method == .options, let count = parseDecimal(value), count > 0 else {
            return appendFieldLine(.maxForwards, value, to: &out)
        }
        HeadWriter.append(.maxForwards, Int(clamping: count - 1), to: &out)
    }

    /// The members of those before us, then ours, with the version in which the request came to us (RFC 9110 §7.6.3).
    private func appendVia(_ fields: Fields, to out: inout [UInt8]) {
        if fields.contains(.via) {
            for line in fields.lines where line.name == .via {
                appendFieldLine(fields.name(of: line), fields.value(of: line), to: &out)
            }
        }
        out.append(received.head.minorVersion == 0 ? "Via: 1.0 larder (" : "Via: 1.1 larder (")
        out.append(contentsOf: instance)
        out.append(")\r\n")
    }
}
