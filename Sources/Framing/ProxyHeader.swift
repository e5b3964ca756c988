package import Message

/// What a load balancer says about a connection before the client's own bytes: the PROXY protocol, versions 1 and 2, as the haproxy project
/// specifies it (proxy-protocol.txt, sections 2.1 and 2.2).
package struct ProxyHeader: Equatable, Sendable {
    /// Whose connection it is.
    package enum Source: Equatable, Sendable {
        /// The client at this address.
        case client(IPAddress, port: UInt16)
        /// The sender's own connection, such as a health check (`LOCAL`), or one whose client the sender does not know (`UNKNOWN`, `UNSPEC`): the
        /// addresses of the socket hold.
        case ownConnection
    }

    package var source: Source
    /// The length of the header in bytes. The client's own bytes follow.
    package var byteCount: Int

    package init(source: Source, byteCount: Int) {
        self.source = source
        self.byteCount = byteCount
    }

    package enum Reading: Equatable, Sendable {
        case complete(ProxyHeader)
        /// The bytes may belong to a header. Read again when at least `needs` bytes have arrived.
        case incomplete(needs: Int)
        case malformed(Fault)
    }

    /// What is wrong with a header.
    package enum Fault: String, CaseIterable, Sendable {
        /// The bytes begin neither version.
        case noHeader = "no-header"
        /// A line of version 1 of more than 107 bytes, or a header of version 2 of more than `bytesMax`.
        case tooLong = "too-long"
        /// A line of version 1 that does not follow the grammar.
        case line = "line"
        /// A version or command that the specification does not know.
        case command = "command"
        /// An address family or protocol that no connection to a proxy can have, such as UDP.
        case family = "family"
        /// Fewer bytes than the addresses take.
        case addresses = "addresses"
        /// An additional value that does not fit into the header.
        case values = "values"
        /// The checksum is not that of the header.
        case checksum = "checksum"
    }

    /// The longest line of version 1, with its CRLF (section 2.1).
    package static let lineBytesMax = 107
    /// The most bytes of a header of version 2 that are accepted. Additional values describe a TLS session at most, which takes some hundred bytes.
    package static let bytesMax = 4096

    fileprivate static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
    private static let line: [UInt8] = Array("PROXY ".utf8)

    /// Reads a header from the first bytes of a connection.
    ///
    /// - Parameter bytes: everything received so far. What follows the header is ignored.
    package static func read(_ bytes: borrowing Span<UInt8>) -> Reading {
        if agrees(bytes, with: signature) {
            return bytes.count < 16 ? .incomplete(needs: 16) : readBinary(bytes)
        }
        guard agrees(bytes, with: line) else { return .malformed(.noHeader) }
        return readLine(bytes)
    }

    /// Whether the bytes that have arrived are those of the beginning.
    private static func agrees(_ bytes: borrowing Span<UInt8>, with beginning: [UInt8]) -> Bool {
        for index in 0..<min(bytes.count, beginning.count) where bytes[index] != beginning[index] { return false }
        return true
    }

    // MARK: version 1

    private static func readLine(_ bytes: borrowing Span<UInt8>) -> Reading {
        var text: [UInt8] = []
        for index in 0..<min(bytes.count, lineBytesMax) {
            guard bytes[index] == 0x0A else {
                text.append(bytes[index])
                continue
            }
            guard text.last == 0x0D else { return .malformed(.line) }
            let words = text.dropLast().split(separator: 0x20, omittingEmptySubsequences: false)
            guard let source = source(words) else { return .malformed(.line) }
            return .complete(ProxyHeader(source: source, byteCount: index + 1))
        }
        return bytes.count < lineBytesMax ? .incomplete(needs: bytes.count + 1) : .malformed(.tooLong)
    }

    /// `PROXY TCP4 source destination port port`. What follows `UNKNOWN` is ignored.
    private static func source(_ words: [ArraySlice<UInt8>]) -> Source? {
        guard words.count >= 2 else { return nil }
        if words[1].elementsEqual("UNKNOWN".utf8) { return .ownConnection }
        guard words.count == 6, let address = IPAddress(strict: words[2]), let own = IPAddress(strict: words[3]),
            let port = Self.port(words[4]), Self.port(words[5]) != nil
        else { return nil }
        // A mapped address counts as IPv4, but is written with colons.
        let hasColons = (words[2].contains(0x3A), words[3].contains(0x3A))
        if words[1].elementsEqual("TCP4".utf8) {
            return hasColons == (false, false) && own.isV4 ? .client(address, port: port) : nil
        }
        return words[1].elementsEqual("TCP6".utf8) && hasColons == (true, true) ? .client(address, port: port) : nil
    }

    private static func port(_ digits: ArraySlice<UInt8>) -> UInt16? {
        guard (1...5).contains(digits.count), digits.count == 1 || digits.first != 0x30 else { return nil }
        var value = 0
        for digit in digits {
            guard (0x30...0x39).contains(digit) else { return nil }
            value = value * 10 + Int(digit - 0x30)
        }
        return UInt16(exactly: value)
    }

    // MARK: version 2

    private static func readBinary(_ bytes: borrowing Span<UInt8>) -> Reading {
        guard bytes[12] >> 4 == 2 else { return .malformed(.command) }
        let byteCount = 16 + Int(bytes[14]) << 8 + Int(bytes[15])
        guard byteCount <= bytesMax else { return .malformed(.tooLong) }
        guard bytes.count >= byteCount else { return .incomplete(needs: byteCount) }
        switch bytes[12] & 15 {
        // The rest of such a header is to be ignored.
        case 0: return .complete(ProxyHeader(source: .ownConnection, byteCount: byteCount))
        case 1: break
        default: return .malformed(.command)
        }
        let addressBytes: Int
        let source: Source
        switch bytes[13] {
        case 0x00: (source, addressBytes) = (.ownConnection, 0)
        case 0x11:
            guard byteCount >= 16 + 12 else { return .malformed(.addresses) }
            let address = IPAddress(v4: UInt32(truncatingIfNeeded: number(bytes, at: 16, 4)))
            (source, addressBytes) = (.client(address, port: UInt16(number(bytes, at: 24, 2))), 12)
        case 0x21:
            guard byteCount >= 16 + 36 else { return .malformed(.addresses) }
            let address = IPAddress(v6: number(bytes, at: 16, 8), low: number(bytes, at: 24, 8))
            (source, addressBytes) = (.client(address, port: UInt16(number(bytes, at: 48, 2))), 36)
        // A Unix socket of the sender's machine has no address.
        case 0x31:
            guard byteCount >= 16 + 216 else { return .malformed(.addresses) }
            (source, addressBytes) = (.ownConnection, 216)
        default: return .malformed(.family)
        }
        // Of UNSPEC only the length is defined.
        if bytes[13] != 0, let fault = faultOfValues(bytes, 16 + addressBytes, byteCount) { return .malformed(fault) }
        return .complete(ProxyHeader(source: source, byteCount: byteCount))
    }

    private static func number(_ bytes: borrowing Span<UInt8>, at start: Int, _ count: Int) -> UInt64 {
        var value: UInt64 = 0
        for index in start..<start + count { value = value << 8 | UInt64(bytes[index]) }
        return value
    }

    /// PP2_TYPE_CRC32C (section 2.2.3).
    private static let checksumType: UInt8 = 0x03

    /// Walks the additional values (section 2.2) and compares the checksum, if there is one.
    private static func faultOfValues(_ bytes: borrowing Span<UInt8>, _ start: Int, _ end: Int) -> Fault? {
        var position = start
        while position < end {
            guard position + 3 <= end else { return .values }
            let next = position + 3 + Int(bytes[position + 1]) << 8 + Int(bytes[position + 2])
            guard next <= end else { return .values }
            if bytes[position] == checksumType {
                guard next == position + 7 else { return .values }
                let place = position + 3..<next
                guard checksum(bytes, end, but: place) == number(bytes, at: place.lowerBound, 4) else {
                    return .checksum
                }
            }
            position = next
        }
        return nil
    }

    /// The CRC32c (RFC 9260, appendix A) of a header whose checksum counts as zero.
    private static func checksum(_ bytes: borrowing Span<UInt8>, _ count: Int, but zeros: Range<Int>) -> UInt64 {
        var remainder: UInt32 = ~0
        for index in 0..<count {
            remainder ^= zeros.contains(index) ? 0 : UInt32(bytes[index])
            for _ in 0..<8 { remainder = remainder >> 1 ^ (remainder & 1 == 0 ? 0 : 0x82F6_3B78) }
        }
        return UInt64(~remainder)
    }
}
