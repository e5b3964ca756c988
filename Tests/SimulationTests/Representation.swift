/// What one answer of an origin is of: the content follows from it, so any byte tells where it came from.
struct Representation: Equatable {
    var uri: Int
    var version: Int
    var language: String
    /// Who it was made for; nil: for anybody.
    var user: Int?
    var isGzip = false

    /// Bytes of the content; zero now and then, and never many: what matters happens at ends and seams. All versions of every
    /// other resource have one length: only validators tell them apart.
    var length: Int {
        let size = Int(mixed(UInt64(uri % 2 == 0 ? uri : uri << 32 | version) ^ 0xA5A5) >> 1)
        return size % 16 == 0 ? 0 : 1 + size / 16 % 48
    }

    var content: [UInt8] {
        let seed = seed
        return (0..<length).map { Representation.coded(UInt8(truncatingIfNeeded: mixed(seed &+ UInt64($0))), isGzip) }
    }

    /// What gzip comes to here: undone by doing it again, and the same length, so that it can be streamed.
    static func coded(_ byte: UInt8, _ isGzip: Bool) -> UInt8 { isGzip ? byte ^ 0x5A : byte }

    /// Coding apart, so that inflated content is the content itself.
    private var seed: UInt64 {
        var seed = mixed(UInt64(uri) << 32 | UInt64(version))
        for byte in language.utf8 { seed = mixed(seed ^ UInt64(byte)) }
        return mixed(seed ^ UInt64((user ?? -1) + 1))
    }
}
