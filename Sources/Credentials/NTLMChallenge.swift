/// Negotiate flags of NTLM ([MS-NLMP] §2.2.2.5), as far as Larder uses them.
struct NTLMFlags: OptionSet, Sendable {
    let rawValue: UInt32

    static let unicode = NTLMFlags(rawValue: 1 << 0)
    static let requestTarget = NTLMFlags(rawValue: 1 << 2)
    static let ntlm = NTLMFlags(rawValue: 1 << 9)
    static let alwaysSign = NTLMFlags(rawValue: 1 << 15)
    static let extendedSessionSecurity = NTLMFlags(rawValue: 1 << 19)
    static let targetInfo = NTLMFlags(rawValue: 1 << 23)
    static let version = NTLMFlags(rawValue: 1 << 25)
    static let key128 = NTLMFlags(rawValue: 1 << 29)
    static let key56 = NTLMFlags(rawValue: 1 << 31)
}

/// Why a server's message cannot be answered.
package enum NTLMFault: Error, Equatable, Sendable {
    /// It is no CHALLENGE_MESSAGE.
    case notAChallenge
    /// It is larger than any server has reason to send.
    case tooLong
    /// It ends early, or a length or an offset points outside of it.
    case outOfBounds
    /// The list of the server's attributes is malformed.
    case malformedTargetInfo
    /// The server does not understand Unicode. Names would have to be in a code page that Larder does not know.
    case noUnicode
    /// User or domain are longer than any directory allows.
    case nameTooLong
    /// The password is not UTF-8, so it has no characters from which to derive a key.
    case passwordIsNotUTF8
    case hashUnavailable(HashAlgorithm)
}

/// CHALLENGE_MESSAGE ([MS-NLMP] §2.2.1.2): the second message, from the server.
package struct NTLMChallenge: Equatable, Sendable {
    /// Beyond: `tooLong`.
    package static let bytesMax = 16 << 10

    /// The whole message, which takes part in the integrity code of the third.
    let message: [UInt8]
    let flags: NTLMFlags
    /// Eight bytes.
    let serverChallenge: [UInt8]
    /// What the server says of itself. Nil if it says nothing.
    let targetInfo: NTLMTargetInfo?

    package init(_ message: [UInt8]) throws(NTLMFault) {
        guard message.count <= Self.bytesMax else { throw .tooLong }
        let reader = LittleEndianReader(bytes: message)
        guard message.starts(with: ntlmSignature) else { throw .notAChallenge }
        guard let kind = reader.integer(at: 8, UInt32.self) else { throw .outOfBounds }
        guard kind == 2 else { throw .notAChallenge }
        guard let flags = reader.integer(at: 20, UInt32.self), let challenge = reader.bytes(at: 24, 8) else {
            throw .outOfBounds
        }
        self.message = message
        self.flags = NTLMFlags(rawValue: flags)
        serverChallenge = challenge
        guard self.flags.contains(.unicode) else { throw .noUnicode }
        guard self.flags.contains(.targetInfo) else {
            targetInfo = nil
            return
        }
        guard let length = reader.integer(at: 40, UInt16.self), let offset = reader.integer(at: 44, UInt32.self),
            let list = reader.bytes(at: Int(offset), Int(length))
        else { throw .outOfBounds }
        guard let targetInfo = NTLMTargetInfo(list) else { throw .malformedTargetInfo }
        self.targetInfo = targetInfo
    }
}

/// A list of AV_PAIR structures ([MS-NLMP] §2.2.2.1).
struct NTLMTargetInfo: Equatable, Sendable {
    /// Without the pair that ends the list.
    private(set) var pairs: [Pair] = []

    struct Pair: Equatable, Sendable {
        let id: UInt16
        var value: [UInt8]
    }

    enum ID: UInt16 {
        case end = 0
        case flags = 6
        case timestamp = 7
        case targetName = 9
        case channelBindings = 10
    }

    init() {}

    /// Returns nil if a pair reaches beyond the bytes, if the list does not end, or if flags or time have not the length of their types. What
    /// follows the end is ignored.
    init?(_ bytes: [UInt8]) {
        let reader = LittleEndianReader(bytes: bytes)
        var offset = 0
        while true {
            guard let id = reader.integer(at: offset, UInt16.self),
                let length = reader.integer(at: offset + 2, UInt16.self)
            else { return nil }
            if id == ID.end.rawValue { return }
            guard let value = reader.bytes(at: offset + 4, Int(length)) else { return nil }
            if id == ID.flags.rawValue, length != 4 { return nil }
            if id == ID.timestamp.rawValue, length != 8 { return nil }
            pairs.append(Pair(id: id, value: value))
            offset += 4 + Int(length)
        }
    }

    subscript(id: ID) -> [UInt8]? {
        get { pairs.first { $0.id == id.rawValue }?.value }
        set {
            let index = pairs.firstIndex { $0.id == id.rawValue }
            if let newValue, let index {
                pairs[index].value = newValue
            } else if let newValue {
                pairs.append(Pair(id: id.rawValue, value: newValue))
            } else if let index {
                pairs.remove(at: index)
            }
        }
    }

    /// With the pair that ends the list.
    var bytes: [UInt8] {
        pairs.flatMap { littleEndian($0.id) + littleEndian(UInt16($0.value.count)) + $0.value } + [0, 0, 0, 0]
    }
}

/// `NTLMSSP` and a zero byte, with which every message begins.
let ntlmSignature = Array("NTLMSSP\0".utf8)

func littleEndian<Integer: FixedWidthInteger & UnsignedInteger>(_ value: Integer) -> [UInt8] {
    (0..<Integer.bitWidth / 8).map { UInt8(truncatingIfNeeded: value >> Integer($0 * 8)) }
}

/// Reads numbers at offsets that a peer chose. Every function returns nil if the bytes do not reach that far.
private struct LittleEndianReader {
    let bytes: [UInt8]

    func bytes(at offset: Int, _ count: Int) -> [UInt8]? {
        guard offset <= bytes.count, count <= bytes.count - offset else { return nil }
        return Array(bytes[offset..<offset + count])
    }

    func integer<Integer: FixedWidthInteger>(at offset: Int, _: Integer.Type) -> Integer? {
        bytes(at: offset, Integer.bitWidth / 8)?.reversed().reduce(0) { $0 << 8 | Integer($1) }
    }
}
