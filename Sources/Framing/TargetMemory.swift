internal import Message

/// Remembers the origins of requests in absolute-form, so that a request for the same origin as the one before it on its connection is
/// parsed from its path on.
///
/// An origin is kept as the bytes from the scheme to the "/" that begins the path. Equal bytes give an equal origin, because an authority ends at its
/// first "/". Another spelling of the same origin is another one here.
@safe struct TargetMemory: ~Copyable {
    /// Longer origins are parsed each time.
    static let byteCountMax = 64

    private struct Entry {
        /// The connection. Zero: none.
        var owner: UInt64 = 0
        var port: UInt16 = 0
        var scheme = Scheme.http
        var hostLength: UInt8 = 0
        var byteCount: UInt8 = 0
        var isNormalised = false
        /// How often in a row the connection asked another origin than before.
        var changes: UInt8 = 0
    }

    private let entries: UnsafeMutablePointer<Entry>
    private let bytes: UnsafeMutableRawPointer

    init() {
        unsafe entries = .allocate(capacity: HeadMemory.entryCount)
        unsafe entries.initialize(repeating: Entry(), count: HeadMemory.entryCount)
        // Not initialized: what no connection uses takes no memory.
        unsafe bytes = .allocate(byteCount: HeadMemory.entryCount * Self.byteCountMax, alignment: 16)
    }

    deinit {
        unsafe entries.deallocate()
        unsafe bytes.deallocate()
    }

    /// Parses the request line of a GET or HEAD of HTTP/1.1 to the origin that `keep` was given last for this owner.
    ///
    /// - Parameters:
    ///   - head: what the request line says is written into it.
    ///   - owner: the number of a connection; not zero.
    /// - Returns: the offset of the fields. Nil for every other line, valid or not: `parseRequestLine` decides about that.
    func recall(_ line: RawSpan, of owner: UInt64, into head: inout RequestHead, limits: Limits) -> Int? {
        guard let (method, methodLength) = commonMethod(loadWord(line, 0)) else { return nil }
        let index = HeadMemory.index(of: owner)
        let entry = unsafe entries[index]
        let start = methodLength &+ 1
        let count = Int(entry.byteCount)
        guard entry.owner == owner, unsafe hasBytes(line, at: start, bytes + index &* Self.byteCountMax, count) else {
            return nil
        }
        let pathStart = start &+ count &- 1
        let end = endOfTarget(line, from: pathStart)
        let next = end &+ Self.restBytes
        guard next <= line.byteCount, loadByte(line, end) == 0x20, isVersion11(line, at: end &+ 1),
            isCRLF(line, next &- 2), end &- start <= limits.targetBytesMax, next <= limits.headBytesMax
        else { return nil }
        unsafe entries[index].changes = 0
        let hostStart = start &+ entry.scheme.prefixLength
        head.method = method
        head.methodRange = 0..<methodLength
        head.minorVersion = 1
        head.targetRange = start..<end
        head.target = RequestTarget(
            form: .absolute, scheme: entry.scheme, host: hostStart..<(hostStart &+ Int(entry.hostLength)),
            port: entry.port, path: pathStart..<end)
        head.target.isNormalised = entry.isNormalised
        return next
    }

    /// The bytes of ` HTTP/1.1` and CRLF.
    private static let restBytes = 11

    /// Remembers the origin of a valid request line.
    func keep(_ line: RawSpan, of owner: UInt64, _ head: borrowing RequestHead) {
        precondition(owner != 0, "zero stands for no connection")
        let (start, target) = (head.targetRange.lowerBound, head.target)
        guard target.form == .absolute, !target.pathRange.isEmpty else { return }
        let pathStart = target.pathRange.lowerBound
        let count = pathStart &+ 1 &- start
        guard loadByte(line, pathStart) == 0x2F, count <= Self.byteCountMax else { return }
        let index = HeadMemory.index(of: owner)
        let entry = unsafe entries + index
        let isSame = unsafe entry.pointee.owner == owner
        if isSame, unsafe entry.pointee.changes >= HeadMemory.changesMax { return }
        unsafe line.withUnsafeBytes { line in
            unsafe (bytes + index &* Self.byteCountMax).copyMemory(from: line.baseAddress! + start, byteCount: count)
        }
        unsafe entry.pointee = Entry(
            owner: owner, port: target.port, scheme: target.scheme, hostLength: UInt8(target.hostRange.count),
            byteCount: UInt8(count), isNormalised: target.isNormalised,
            changes: isSame ? entry.pointee.changes + 1 : 0)
    }
}
