/// The order of the book: by host with its labels reversed, then by port, scheme and path. So everything below a domain is together,
/// and everything below a path of a host. Each key has one order key, which leads back to it (docs/storage-format.md).
///
///     http://www.example.org:8080/a?b   0x10 org.example.www.! 0x1F90 h /a?b
///     https://192.0.2.1/                0x20 192.0.2.1! 0x01BB s /
///     anything else                     0xF0 as it is
///
/// A URI that is not in normal form (upper case, a default port written out) counts as "anything else": its order key could not lead
/// back to its spelling.
enum BookOrder {
    static let name: UInt8 = 0x10
    static let address: UInt8 = 0x20
    static let raw: UInt8 = 0xF0
    /// Ends the host. Lower than any byte of a label, so that a host comes before the hosts below it.
    static let hostEnd: UInt8 = 0x21
    static let dot: UInt8 = 0x2E

    /// The longest key of LMDB in its default configuration.
    static let bookKeyBytesMax = 511
    /// A zero and the object number, behind the order key.
    static let suffixBytes = 9
    static let orderBytesMax = bookKeyBytesMax - suffixBytes
    static let digestBytes = 16
    /// How much of a cut order key is left. A digest follows.
    static let cutBytes = orderBytesMax - digestBytes

    static func orderKey(of key: [UInt8]) -> [UInt8] {
        guard let uri = BookURI(key), uri.isComplete else { return [raw] + key }
        var order: [UInt8] = []
        order.reserveCapacity(key.count + 8)
        appendHost(key[uri.host], isAddress: uri.isAddress, to: &order)
        order.append(UInt8(truncatingIfNeeded: uri.port >> 8))
        order.append(UInt8(truncatingIfNeeded: uri.port))
        order.append(uri.isSecure ? 0x73 : 0x68)
        order.append(contentsOf: key[uri.rest...])
        return order
    }

    /// Appends kind, host, and the end of the host.
    static func appendHost(_ host: ArraySlice<UInt8>, isAddress: Bool, to order: inout [UInt8]) {
        order.append(isAddress ? address : name)
        if isAddress { order.append(contentsOf: host) } else { appendReversed(host, to: &order) }
        order.append(hostEnd)
    }

    /// Appends the labels of a name from the last to the first, each followed by a dot.
    static func appendReversed(_ host: ArraySlice<UInt8>, to order: inout [UInt8]) {
        var end = host.endIndex
        while true {
            var start = end
            while start > host.startIndex, host[start - 1] != dot { start -= 1 }
            order.append(contentsOf: host[start..<end])
            order.append(dot)
            guard start > host.startIndex else { return }
            end = start - 1
        }
    }

    /// The key that an order key leads back to, if it is not cut. Returns nil if this is no order key.
    static func key(ofOrder order: UnsafeRawBufferPointer) -> [UInt8]? {
        guard let kind = unsafe order.first else { return nil }
        if kind == raw { return unsafe [UInt8](order[1...]) }
        guard kind == name || kind == address, let end = unsafe order.firstIndex(of: hostEnd), order.count >= end + 4
        else { return nil }
        let port = unsafe UInt16(order[end + 1]) << 8 | UInt16(order[end + 2])
        let isSecure: Bool
        switch unsafe order[end + 3] {
        case 0x73: isSecure = true
        case 0x68: isSecure = false
        default: return nil
        }
        var key: [UInt8] = []
        key.reserveCapacity(order.count + 16)
        key.append(contentsOf: isSecure ? BookURI.https : BookURI.http)
        if kind == address {
            unsafe key.append(contentsOf: UnsafeRawBufferPointer(rebasing: order[1..<end]))
        } else {
            guard end > 2, unsafe order[end - 1] == dot else { return nil }
            var labelEnd = end - 1
            while true {
                var start = labelEnd
                while start > 1, unsafe order[start - 1] != dot { start -= 1 }
                unsafe key.append(contentsOf: UnsafeRawBufferPointer(rebasing: order[start..<labelEnd]))
                guard start > 1 else { break }
                key.append(dot)
                labelEnd = start - 1
            }
        }
        if port != (isSecure ? 443 : 80) {
            key.append(0x3A)
            key.append(contentsOf: String(port).utf8)
        }
        unsafe key.append(contentsOf: UnsafeRawBufferPointer(rebasing: order[(end + 4)...]))
        return key
    }

    /// The key of an object in the book: order key, a zero, and the object number in big-endian order.
    static func bookKey(_ id: ObjectID, _ key: [UInt8]) -> (bytes: [UInt8], isCut: Bool) {
        var bytes = orderKey(of: key)
        let isCut = bytes.count > orderBytesMax
        if isCut { cut(&bytes) }
        appendID(id, to: &bytes)
        precondition(bytes.count <= bookKeyBytesMax, "LMDB takes keys of this length")
        return (bytes, isCut)
    }

    static func appendID(_ id: ObjectID, to bytes: inout [UInt8]) {
        bytes.append(0)
        appendBigEndian(id.rawValue, to: &bytes)
    }

    /// Shortens an order key to `orderBytesMax`: its beginning, and a digest of all of it.
    static func cut(_ order: inout [UInt8]) {
        precondition(order.count > orderBytesMax, "only a long order key is cut")
        let (high, low) = digest(order)
        order.removeLast(order.count - cutBytes)
        appendBigEndian(high, to: &order)
        appendBigEndian(low, to: &order)
        precondition(order.count == orderBytesMax, "a cut order key is as long as the limit")
    }

    static func appendBigEndian(_ number: UInt64, to bytes: inout [UInt8]) {
        for shift in stride(from: 56, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(shift)))
        }
    }

    /// Two runs of FNV-1a with different bases and primes, mixed at the end. The digest keeps keys with the same beginning apart in
    /// the order. Collisions do no harm.
    static func digest(_ bytes: [UInt8]) -> (UInt64, UInt64) {
        var high: UInt64 = 0xCBF2_9CE4_8422_2325
        var low: UInt64 = 0x6C62_272E_07BB_0142
        for byte in bytes {
            high = (high ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
            low = (low ^ UInt64(byte)) &* 0x9E37_79B9_7F4A_7C15
        }
        return (mix(high), mix(low ^ high))
    }

    private static func mix(_ word: UInt64) -> UInt64 {
        var word = (word ^ word >> 33) &* 0xFF51_AFD7_ED55_8CCD
        word = (word ^ word >> 33) &* 0xC4CE_B9FE_1A85_EC53
        return word ^ word >> 33
    }
}

/// The parts of a key that is an http or https URI in a form that its order key leads back to.
struct BookURI {
    static let http = Array("http://".utf8)
    static let https = Array("https://".utf8)

    var isSecure: Bool
    var host: Range<Int>
    var isAddress: Bool
    var port: UInt16
    /// Where path, query or asterisk begins; the end of the key if there is none.
    var rest: Int
    /// False if the key ends in the authority, which more bytes could change.
    var hasRest: Bool
    /// Host and port are well-formed as far as they go.
    var isComplete: Bool

    /// Returns nil if the key is no such URI and cannot become one by appending bytes.
    init?(_ key: [UInt8]) {
        isSecure = key.starts(with: Self.https)
        guard isSecure || key.starts(with: Self.http) else { return nil }
        let start = isSecure ? Self.https.count : Self.http.count
        let authority = start..<(key[start...].firstIndex(where: Self.endsAuthority) ?? key.count)
        rest = authority.upperBound
        hasRest = rest < key.count
        isComplete = false
        (host, isAddress, port) = (authority, false, isSecure ? 443 : 80)
        var hostEnd = authority.upperBound
        if authority.isEmpty {
            if hasRest { return nil }
            return
        }
        if key[start] == 0x5B {
            guard let bracket = key[authority].firstIndex(of: 0x5D) else {
                if hasRest { return nil }
                return
            }
            hostEnd = bracket + 1
            isAddress = true
        } else if let colon = key[authority].firstIndex(of: 0x3A) {
            hostEnd = colon
        }
        host = start..<hostEnd
        if hostEnd < authority.upperBound {
            guard let port = Self.port(key[hostEnd..<authority.upperBound]), port != self.port else {
                if hasRest { return nil }
                return
            }
            self.port = port
        }
        if isAddress {
            isComplete = host.count > 2 && key[host.dropFirst().dropLast()].allSatisfy(Self.isInBrackets)
        } else {
            guard let isAddress = Self.isAddress(key[host]) else {
                if hasRest { return nil }
                return
            }
            self.isAddress = isAddress
            isComplete = true
        }
        if hasRest && !isComplete { return nil }
    }

    /// "/", "?", "#", "*".
    static func endsAuthority(_ byte: UInt8) -> Bool { byte == 0x2F || byte == 0x3F || byte == 0x23 || byte == 0x2A }

    static func isInBrackets(_ byte: UInt8) -> Bool {
        byte &- 0x30 < 10 || byte &- 0x61 < 6 || byte == 0x3A || byte == BookOrder.dot
    }

    /// Visible ASCII, except upper case and the delimiters of an authority.
    static func isInLabel(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x22...0x7E:
            !(byte &- 0x41 < 26 || byte == 0x3A || byte == 0x40 || byte &- 0x5B < 3 || endsAuthority(byte))
        default: false
        }
    }

    /// Whether the host is an IPv4 address: its last label is a number. Returns nil if a label is empty or malformed.
    static func isAddress(_ host: ArraySlice<UInt8>) -> Bool? {
        var (labelBytes, isNumber) = (0, true)
        for byte in host {
            if byte == BookOrder.dot {
                guard labelBytes > 0 else { return nil }
                (labelBytes, isNumber) = (0, true)
            } else {
                guard isInLabel(byte) else { return nil }
                labelBytes += 1
                if byte &- 0x30 >= 10 { isNumber = false }
            }
        }
        return labelBytes > 0 ? isNumber : nil
    }

    /// ":" followed by a number from 1 to 65535 without a leading zero.
    static func port(_ bytes: ArraySlice<UInt8>) -> UInt16? {
        let digits = bytes.dropFirst()
        guard bytes.first == 0x3A, (1...5).contains(digits.count), digits.first != 0x30 else { return nil }
        var port = 0
        for byte in digits {
            guard byte &- 0x30 < 10 else { return nil }
            port = port * 10 + Int(byte &- 0x30)
        }
        return UInt16(exactly: port)
    }
}
