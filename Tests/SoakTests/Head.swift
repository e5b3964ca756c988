/// What a peer sent is not HTTP/1.1 as RFC 9112 has it.
struct Violation: Error, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
}

/// A head of a request or of a response, read strictly: nothing that RFC 9112 only tolerates passes. Written without a
/// look at Larder's parsers, so that a mistake of theirs is not repeated here.
struct Head: Sendable {
    var startLine: String
    /// In their order; names in lower case.
    var fields: [(name: String, value: String)] = []

    /// - Parameter bytes: up to and with the empty line.
    init(_ bytes: ArraySlice<UInt8>) throws(Violation) {
        var lines = Self.lines(bytes)
        guard lines.count >= 3, lines.last?.isEmpty == true, lines[lines.count - 2].isEmpty, let first = lines.first
        else { throw Violation("no head") }
        lines.removeLast(2)
        startLine = String(decoding: first, as: UTF8.self)
        for line in lines {
            guard !line.contains(13), !line.contains(10), !line.contains(0) else {
                throw Violation("CR, LF or NUL inside a line")
            }
        }
        for line in lines.dropFirst() { fields.append(try Self.field(line)) }
    }

    /// A trailer section: lines without a start line.
    init(trailers bytes: ArraySlice<UInt8>) throws(Violation) {
        try self.init(Array("trailers\r\n".utf8)[...] + bytes)
    }

    /// Split at CRLF; a bare CR or LF stays inside a line.
    private static func lines(_ bytes: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
        var result: [ArraySlice<UInt8>] = []
        var start = bytes.startIndex
        var rest = bytes
        while let feed = rest.firstIndex(of: 10) {
            if feed > start, bytes[feed - 1] == 13 {
                result.append(bytes[start..<feed - 1])
                start = feed + 1
            }
            rest = rest[(feed + 1)...]
        }
        result.append(bytes[start...])
        return result
    }

    private static func field(_ line: ArraySlice<UInt8>) throws(Violation) -> (name: String, value: String) {
        let text = String(decoding: line, as: UTF8.self)
        guard let colon = line.firstIndex(of: 0x3A), colon > line.startIndex, line[..<colon].allSatisfy(isTokenByte)
        else { throw Violation("no field line: \(text)") }
        var value = line[(colon + 1)...]
        while let byte = value.first, byte == 0x20 || byte == 9 { value.removeFirst() }
        while let byte = value.last, byte == 0x20 || byte == 9 { value.removeLast() }
        guard value.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 9 }) else { throw Violation("a control in \(text)") }
        return (String(decoding: line[..<colon], as: UTF8.self).lowercased(), String(decoding: value, as: UTF8.self))
    }

    subscript(_ name: String) -> String? { fields.first { $0.name == name }?.value }

    func all(_ name: String) -> [String] { fields.filter { $0.name == name }.map(\.value) }

    /// The members of a list, in lower case.
    func members(_ name: String) -> [String] {
        all(name).flatMap { $0.split(separator: ",") }.map { trimmed($0).lowercased() }.filter { !$0.isEmpty }
    }

    /// The body's length (RFC 9110 §8.6). Returns nil if none is announced.
    func contentLength() throws(Violation) -> Int? {
        let values = all("content-length")
        guard let value = values.first else { return nil }
        guard values.count == 1, let length = decimal(value) else { throw Violation("Content-Length: \(values)") }
        return length
    }

    /// True if chunked. Any other transfer coding is a violation: Larder knows none.
    func isChunked() throws(Violation) -> Bool {
        let values = all("transfer-encoding")
        guard !values.isEmpty else { return false }
        guard values == ["chunked"] else { throw Violation("Transfer-Encoding: \(values)") }
        guard all("content-length").isEmpty else { throw Violation("Transfer-Encoding and Content-Length") }
        return true
    }
}

func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E, 0x5F, 0x60, 0x7C, 0x7E:
        true
    default: false
    }
}

/// Digits and nothing else. Returns nil for all other text, and for numbers that do not fit.
func decimal(_ text: some StringProtocol) -> Int? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int(text)
}

func trimmed(_ text: some StringProtocol) -> String {
    String(text.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
}

/// `bytes first-last/total` (RFC 9110 §14.4).
struct ContentRange: Equatable, Sendable {
    /// Nil for `*`: unsatisfied.
    var range: Range<Int>?
    /// Nil for `*`: unknown.
    var total: Int?

    init?(_ text: String) {
        guard text.hasPrefix("bytes ") else { return nil }
        let parts = text.dropFirst(6).split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        if parts[1] != "*" {
            guard let total = decimal(parts[1]) else { return nil }
            self.total = total
        }
        if parts[0] != "*" {
            let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
            guard ends.count == 2, let first = decimal(ends[0]), let last = decimal(ends[1]), first <= last,
                last < total ?? Int.max
            else { return nil }
            range = first..<last + 1
        } else if total == nil {
            return nil
        }
    }
}

/// One range of a `Range` field, before the length is known (RFC 9110 §14.1.2).
enum RangeWish: Equatable, Sendable, CustomStringConvertible {
    case span(Int, Int)
    case from(Int)
    case last(Int)

    init?(_ text: some StringProtocol) {
        let ends = trimmed(text).split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2 else { return nil }
        switch (decimal(ends[0]), decimal(ends[1])) {
        case (let first?, let last?) where first <= last: self = .span(first, last)
        case (let first?, nil) where ends[1].isEmpty: self = .from(first)
        case (nil, let count?) where ends[0].isEmpty: self = .last(count)
        default: return nil
        }
    }

    var description: String {
        switch self {
        case .span(let first, let last): "\(first)-\(last)"
        case .from(let first): "\(first)-"
        case .last(let count): "-\(count)"
        }
    }

    /// Returns nil if no byte of a body of that length is meant.
    func resolved(_ length: Int) -> Range<Int>? {
        switch self {
        case .span(let first, let last): first < length ? first..<(min(last, length - 1) + 1) : nil
        case .from(let first): first < length ? first..<length : nil
        case .last(let count): count > 0 && length > 0 ? max(0, length - count)..<length : nil
        }
    }

    /// The value of a `Range` field. Returns nil if it is not about bytes or malformed.
    static func list(_ value: String) -> [RangeWish]? {
        guard value.hasPrefix("bytes=") else { return nil }
        let parts = value.dropFirst(6).split(separator: ",").map { RangeWish($0) }
        return parts.contains(nil) || parts.isEmpty ? nil : parts.compactMap(\.self)
    }
}
