import Caching
package import Framing
package import Message

/// A request as Larder sends it to an origin (RFC 9110 §7.6): the client's request without its hop-by-hop fields, and with the fields
/// that a proxy adds.
///
/// It is a value, so that code that changes or signs it (credentials for an origin, a next proxy) does so before it is serialized.
/// It shares the bytes of the client's head and keeps only the differences: a request that nothing changes is made and serialized
/// without an allocation.
package struct OutgoingRequest: ~Copyable {
    /// Which part of the request can be sent a second time.
    package enum Replay: Equatable, Sendable {
        /// The whole request: it has no content.
        case everything
        /// The head. Content is not kept after it has been sent to an origin.
        case head
    }

    /// A field that Larder adds. `spelling` is how its name is written; empty for the usual spelling of `name`.
    private struct AddedField: Sendable {
        let name: FieldName
        let spelling: [UInt8]
        let value: [UInt8]
    }

    private let received: ReceivedRequest
    /// The line that Larder adds.
    private let viaLine: [UInt8]
    private var isUpgrade: Bool
    /// Fields of the client with a `FieldName` that are not sent.
    private var dropped: FieldNameSet
    private var conditions: [(FieldName, [UInt8])]
    private var added: [AddedField] = []
    /// Names of the client's fields without a `FieldName` that are not sent.
    private var droppedNames: [[UInt8]] = []
    private var ownTarget: [UInt8]?
    private var ownAuthority: [UInt8]?
    private var isForProxy = false
    private var minorVersion: UInt8 = 1
    private var closes = false
    private var isProbe = false

    /// How the content is framed on the connection to the origin.
    package private(set) var framing: BodyLength

    /// - Parameters:
    ///   - conditions: validators of a stored response, a missing range, and the coding of the stored response. They replace the client's
    ///     own conditions and ranges (RFC 9111 §4.3.1) and its fields of the same names. Nil: the client's are sent.
    ///   - instance: the comment in `Via` that tells this Larder from others, so that a loop is detected (RFC 9110 §7.6.3).
    package init(_ received: ReceivedRequest, conditions: [(FieldName, [UInt8])]?, instance: Instance) {
        self.received = received
        viaLine = received.head.minorVersion == 0 ? instance.viaLine10 : instance.viaLine11
        self.conditions = conditions ?? []
        framing = received.bodyLength
        isUpgrade = received.isUpgrade
        dropped = OutgoingRequest.writtenAnew
        if received.head.minorVersion == 0 { dropped.insert(.expect) }
        if let conditions {
            dropped = dropped.union(replacedByConditionalFields)
            for (name, _) in conditions { dropped.insert(name) }
        }
    }

    /// Fields that are left out or written anew. A constant, because an array literal of a set is allocated.
    private static let writtenAnew = ForwardedHead.notForwarded.union([.host, .via, .maxForwards])

    // MARK: contents

    package var method: Method { received.method }
    package var methodText: ArraySlice<UInt8> { received.methodText }

    /// The target in origin-form, in absolute-form for a next proxy, or `*` (RFC 9112 §3.2).
    package var target: [UInt8] {
        [UInt8](room: targetLengthMax) { appendTarget(to: &$0) }
    }

    /// The value of `Host`, with the port unless it is the default of the scheme (RFC 9110 §7.2).
    package var authority: [UInt8] {
        [UInt8](room: authorityLengthMax) { appendAuthority(to: &$0) }
    }

    package var replay: Replay { received.hasBody ? .head : .everything }

    /// Whether it may be sent again without knowing whether the origin has processed it (RFC 9110 §9.2.2).
    package var isRepeatable: Bool { method.isIdempotent && replay == .everything }

    /// Calls `body` with the name and value of each field line in the order in which they are sent, `Host` first.
    package func forEachField(_ body: (_ name: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) -> Void) {
        var bytes = Array("Host: ".utf8)
        bytes.append(addingCapacity: fieldsLengthMax) { appendFields(to: &$0) }
        var start = 0
        while let end = bytes[start...].firstIndex(of: 0x0D), let colon = bytes[start..<end].firstIndex(of: 0x3A) {
            // Larder writes ": ". A received line may have other white space around its value, which is not part of the value.
            let value = bytes[(colon + 1)..<end]
            body(bytes[start..<colon], value.first == 0x20 ? value.dropFirst() : value)
            start = end + 2
        }
    }

    // MARK: changes

    /// Addresses the request to a next proxy: with the target in absolute-form (RFC 9112 §3.2.2).
    ///
    /// - Parameter authorization: the value of `Proxy-Authorization`. Nil: the request has none.
    package mutating func addressToProxy(authorization: [UInt8]?) {
        isForProxy = true
        if let authorization { set(.proxyAuthorization, authorization) }
    }

    /// Addresses the request to another node of the fleet: with the target in absolute-form, whatever its scheme.
    package mutating func addressToPeer() {
        isForProxy = true
        added.removeAll()
    }

    /// Sends the request as HTTP/1.0. The origin closes the connection behind its response then.
    package mutating func useHTTP10() {
        if case .chunked = framing { preconditionFailure("HTTP/1.0 has no chunks") }
        minorVersion = 0
        dropped.insert(.expect)
    }

    /// Asks the origin to close the connection behind its response (RFC 9112 §9.6).
    package mutating func closeAfterwards() { closes = true }

    /// Announces content in another coding, whose length is not known before it has been made (RFC 9110 §8.4). The caller encodes it.
    package mutating func encodeContent(_ coding: StaticString) {
        precondition(minorVersion > 0, "content without a length needs chunks")
        set(.contentEncoding, Array("\(coding)".utf8))
        framing = .chunked
    }

    /// Announces content that is here already, and whole.
    ///
    /// - Parameter inChunks: content that came in chunks leaves in chunks, because trailers follow it or its length will be another one.
    package mutating func announce(contentLength count: Int, inChunks: Bool) {
        if case .chunked = framing, inChunks {} else { framing = .length(UInt64(count)) }
        // It is here already, whatever the client waits for.
        dropped.insert(.expect)
    }

    /// Asks for the head of the target alone (HEAD), without content and without anything that would make more of it.
    package mutating func becomeProbe() {
        isProbe = true
        isUpgrade = false
        framing = .none
        dropped = dropped.union(OutgoingRequest.notOfProbes)
        conditions = []
        added.removeAll { OutgoingRequest.notOfProbes.contains($0.name) }
    }

    /// What makes a request conditional, describes content, or names another method.
    private static let notOfProbes = replacedByConditionalFields.union([
        .expect, .contentEncoding, .contentLanguage, .contentLocation, .contentRange, .contentType, .xHTTPMethod,
        .xHTTPMethodOverride, .xMethodOverride,
    ])

    /// Replaces the target: its path and query.
    package mutating func setTarget(_ target: [UInt8]) {
        precondition(!target.isEmpty, "the target is empty")
        ownTarget = target
    }

    /// Replaces the value of `Host`.
    package mutating func setAuthority(_ authority: [UInt8]) { ownAuthority = authority }

    /// Removes all lines with that name.
    package mutating func remove(_ name: FieldName) {
        precondition(isChangeable(name), "Larder itself writes this field")
        dropped.insert(name)
        conditions.removeAll { $0.0 == name }
        added.removeAll { $0.name == name }
    }

    /// Removes all lines with a name that has no `FieldName`.
    package mutating func remove(spelling: [UInt8]) {
        droppedNames.append(spelling)
        added.removeAll { equalsIgnoringCase($0.spelling, spelling) }
    }

    /// Replaces all lines with that name by one line.
    package mutating func set(_ name: FieldName, _ value: [UInt8]) {
        remove(name)
        added.append(AddedField(name: name, spelling: [], value: value))
    }

    /// Replaces all lines with a name that has no `FieldName` by one line.
    package mutating func set(spelling: [UInt8], _ value: [UInt8]) {
        remove(spelling: spelling)
        added.append(AddedField(name: .other, spelling: spelling, value: value))
    }

    /// Adds a line behind the others.
    package mutating func add(spelling: [UInt8], _ value: [UInt8]) {
        let name = FieldName(spelling: spelling)
        precondition(name == .other || isChangeable(name), "Larder itself writes this field")
        added.append(AddedField(name: name, spelling: spelling, value: value))
    }

    /// False for fields that follow from the framing, the target or the connection.
    private func isChangeable(_ name: FieldName) -> Bool {
        switch name {
        case .other, .host, .via, .maxForwards, .contentLength, .transferEncoding, .connection, .upgrade: false
        default: true
        }
    }

    // MARK: bytes

    /// Appends the head, with the empty line that ends it.
    package func serialize(into out: inout [UInt8]) {
        out.append(addingCapacity: lengthMax) { serialize(into: &$0) }
    }

    /// The room in bytes that `serialize` needs at most.
    package var lengthMax: Int {
        max(4, received.head.methodRange.count) + targetLengthMax + 24 + fieldsLengthMax
    }

    package func serialize(into out: inout OutputSpan<UInt8>) {
        if isProbe { out.append("HEAD") } else { out.append(received.bytes, received.head.methodRange) }
        out.append(0x20)
        appendTarget(to: &out)
        out.append(minorVersion == 0 ? " HTTP/1.0\r\nHost: " : " HTTP/1.1\r\nHost: ")
        appendFields(to: &out)
    }

    /// The field lines, from the value of `Host` on, and the empty line.
    private func appendFields(to out: inout OutputSpan<UInt8>) {
        let fields = received.fields
        appendAuthority(to: &out)
        out.append("\r\n")
        fields.appendLines(to: &out) { isKept($0, of: fields) }
        for (name, value) in conditions { appendLine(name.text, value, to: &out) }
        for field in added {
            if !field.spelling.isEmpty {
                out.append(field.spelling)
                appendLine("", field.value, to: &out)
            } else {
                appendLine(field.name.text, field.value, to: &out)
            }
        }
        appendMaxForwards(fields, to: &out)
        // The received members of `Via`, then Larder's own with the version of the received request (RFC 9110 §7.6.3).
        if fields.contains(.via) { fields.appendLines(to: &out) { $0.name == .via } }
        out.append(viaLine)
        // WebSocket is the only protocol that Larder passes on (`ReceivedRequest.isUpgrade`).
        if isUpgrade, minorVersion > 0 {
            out.append("Connection: Upgrade\r\nUpgrade: websocket\r\n")
        } else if closes {
            out.append("Connection: close\r\n")
        }
        switch framing {
        case .length(let count): ForwardedHead.appendFraming(.length(count), to: &out)
        case .chunked: ForwardedHead.appendFraming(.chunked, to: &out)
        case .none, .untilClose, .tunnel: break
        }
        out.append("\r\n")
    }

    private func appendLine(_ name: StaticString, _ value: [UInt8], to out: inout OutputSpan<UInt8>) {
        out.append(name)
        out.append(": ")
        out.append(value)
        out.append("\r\n")
    }

    /// The room in bytes that `appendFields` needs at most. No line of the client is written twice, so they are no longer than its head.
    private var fieldsLengthMax: Int {
        var length = authorityLengthMax + received.bytes.count + viaLine.count + 160
        for (name, value) in conditions { length += name.text.utf8CodeUnitCount + value.count + 4 }
        for field in added {
            length += field.name.text.utf8CodeUnitCount + field.spelling.count + field.value.count + 4
        }
        return length
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

    private func appendTarget(to out: inout OutputSpan<UInt8>) {
        if isForProxy {
            out.append(received.head.target.scheme == .https ? "https://" : "http://")
            appendAuthority(to: &out)
        }
        if let ownTarget { return out.append(ownTarget) }
        let path = received.head.target.pathRange
        if path.isEmpty {
            // RFC 9112 §3.2.4: for a proxy, "*" is a target without a path.
            if isForProxy && method == .options { return }
            // An absolute-form target without a path means "*" for OPTIONS (RFC 9112 §3.2.4).
            out.append(method == .options ? 0x2A : 0x2F)
        } else {
            if received.bytes[path.lowerBound] == 0x3F { out.append(0x2F) }
            out.append(received.bytes, path)
        }
    }

    private var targetLengthMax: Int {
        1 + (ownTarget?.count ?? received.head.target.pathRange.count) + (isForProxy ? 8 + authorityLengthMax : 0)
    }

    private func appendAuthority(to out: inout OutputSpan<UInt8>) {
        if let ownAuthority { return out.append(ownAuthority) }
        let target = received.head.target
        // In the form of the key: an origin that tells cases apart must not answer for another form of the name.
        for index in target.hostRange { out.append(asciiLowercased(received.bytes[index])) }
        if target.port != target.scheme.defaultPort {
            out.append(0x3A)
            appendDecimal(UInt64(target.port), to: &out)
        }
    }

    private var authorityLengthMax: Int {
        1 + decimalLengthMax + (ownAuthority?.count ?? received.head.target.hostRange.count)
    }

    /// `Max-Forwards` is decremented for TRACE and OPTIONS, and unchanged for other methods (RFC 9110 §7.6.2). A number beyond 64 bits becomes the largest one
    /// that Larder counts with.
    private func appendMaxForwards(_ fields: Fields, to out: inout OutputSpan<UInt8>) {
        guard let value = fields.first(.maxForwards) else { return }
        out.append("Max-Forwards: ")
        if method == .trace || method == .options, !value.isEmpty, value.allSatisfy({ isDigit($0) }) {
            let count = parseDecimal(value)
            appendDecimal(count.map { $0 == 0 ? 0 : $0 - 1 } ?? .max, to: &out)
        } else {
            out.append(value)
        }
        out.append("\r\n")
    }
}
