import Glibc

/// Where a `MessageReader` gets its bytes from: a socket, or a test's script.
protocol ByteSource {
    func receive(into bytes: inout [UInt8], _ countMax: Int) -> Socket.Received
}

extension Socket: ByteSource {}

/// Bytes of one connection in their order: heads, lines and bodies.
struct MessageReader<Source: ByteSource> {
    let source: Source
    private var buffer: [UInt8] = []
    private var start = 0
    /// Called before each read of a slow reader.
    var beforeRead: (() -> Void)?
    var readMax = 65_536

    init(_ source: Source) { self.source = source }

    enum Problem: Error {
        case end, reset, timedOut
        case violation(Violation)
    }

    /// What has come and was not read yet.
    var pending: ArraySlice<UInt8> { buffer[start...] }

    private mutating func fill() throws(Problem) {
        if start > 0 {
            buffer.removeFirst(start)
            start = 0
        }
        beforeRead?()
        switch source.receive(into: &buffer, readMax) {
        case .bytes: return
        case .end: throw .end
        case .reset: throw .reset
        case .timedOut: throw .timedOut
        }
    }

    /// Waits for the first byte of a message.
    mutating func awaitByte() throws(Problem) { if start == buffer.count { try fill() } }

    /// Up to and with the empty line.
    mutating func head() throws(Problem) -> ArraySlice<UInt8> { try through([13, 10, 13, 10], sizeMax: 128 << 10) }

    /// Without its CRLF.
    mutating func line() throws(Problem) -> ArraySlice<UInt8> { try through([13, 10], sizeMax: 8 << 10).dropLast(2) }

    private mutating func through(_ end: [UInt8], sizeMax: Int) throws(Problem) -> ArraySlice<UInt8> {
        while true {
            if let found = firstPlace(of: end, in: buffer, from: start) {
                defer { start = found + end.count }
                return buffer[start..<found + end.count]
            }
            guard buffer.count - start < sizeMax else { throw .violation(Violation("no end of a head or line")) }
            try fill()
        }
    }

    /// A trailer section, up to and with its empty line.
    mutating func trailers() throws(Problem) -> ArraySlice<UInt8> {
        while buffer.count - start < 2 { try fill() }
        if buffer[start] == 13, buffer[start + 1] == 10 {
            defer { start += 2 }
            return buffer[start..<start + 2]
        }
        return try head()
    }

    /// Appends `count` bytes to `body` as they come; what came before a problem is there.
    mutating func read(_ count: Int, into body: inout [UInt8]) throws(Problem) {
        var rest = count
        while rest > 0 {
            try awaitByte()
            let taken = min(rest, buffer.count - start)
            body += buffer[start..<start + taken]
            start += taken
            rest -= taken
        }
    }

    /// Appends all that comes until the peer closes.
    mutating func readToEnd(into body: inout [UInt8]) throws(Problem) {
        while true {
            do { try awaitByte() } catch .end { return }
            body += buffer[start...]
            start = buffer.count
        }
    }
}

/// The offset of the first place from `start` on where `needle` stands in `bytes`. Returns nil if there is none.
func firstPlace(of needle: [UInt8], in bytes: [UInt8], from start: Int) -> Int? {
    unsafe bytes.withUnsafeBytes { all in
        unsafe needle.withUnsafeBytes { needle in
            var at = start
            while at + needle.count <= all.count {
                let room = all.count - at - needle.count + 1
                guard let hit = unsafe memchr(all.baseAddress! + at, CInt(needle[0]), room) else { return nil }
                at = unsafe UnsafeRawPointer(hit) - all.baseAddress!
                if unsafe memcmp(all.baseAddress! + at, needle.baseAddress!, needle.count) == 0 { return at }
                at += 1
            }
            return nil
        }
    }
}

/// Bytes as a person reads them when something is wrong with them.
func dump(_ bytes: some Collection<UInt8>) -> String {
    let bytes = Array(bytes)
    return stride(from: 0, to: bytes.count, by: 24).map { row in
        let line = bytes[row..<min(row + 24, bytes.count)]
        let hex = line.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: " ")
        let text = line.map { (0x20...0x7E).contains($0) ? String(UnicodeScalar($0)) : "." }.joined()
        return "      \(hex)  \(text)"
    }.joined(separator: "\n")
}
