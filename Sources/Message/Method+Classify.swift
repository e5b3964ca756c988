extension Method {
    /// The method with this token. Case matters (RFC 9110 §9.1). `other` if it has no case of its own.
    package init(token: some Collection<UInt8>) {
        let bytes = Array(token)
        self = unsafe Method.classify(bytes.span.bytes, 0..<bytes.count)
    }

    package static func classify(_ bytes: RawSpan, _ range: Range<Int>) -> Method {
        guard range.count >= 3, range.count <= 7 else { return .other }
        var word: UInt64 = 0
        var index = range.upperBound
        while index > range.lowerBound {
            index &-= 1
            let byte = unsafe bytes.unsafeLoad(fromByteOffset: index, as: UInt8.self)
            word = word << 8 | UInt64(byte)
        }
        switch word {
        case 0x54_4547: return .get
        case 0x4441_4548: return .head
        case 0x5453_4F50: return .post
        case 0x54_5550: return .put
        case 0x4554_454C_4544: return .delete
        case 0x54_4345_4E4E_4F43: return .connect
        case 0x53_4E4F_4954_504F: return .options
        case 0x45_4341_5254: return .trace
        case 0x48_4354_4150: return .patch
        default: return .other
        }
    }
}
