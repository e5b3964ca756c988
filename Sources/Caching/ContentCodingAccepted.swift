package import Message

/// The content codings a client accepts, each with its weight (RFC 9110 §12.5.3).
///
/// A request without the field accepts anything, says the RFC, as does one where it is empty but for codings. In truth who
/// does not send it can not decode: such a client counts as one that wants the content as it is.
package struct AcceptedCodings: Sendable, Equatable {
    /// Ten bits for each coding: thousandths.
    private var weights: UInt64 = 0

    package init(_ request: FieldSection, bytes: borrowing Span<UInt8>) {
        guard let value = request.joined(.acceptEncoding, bytes) else {
            set(.identity, 1000)
            return
        }
        var listed = 0
        var anyOther: Int?
        for (token, weight) in qualityValues(value[...]) {
            if token.elementsEqual([Byte.asterisk]) { anyOther = max(anyOther ?? 0, weight) }
            guard let coding = ContentCoding(name: token) else { continue }
            // Listed twice, once as x-gzip perhaps: the kinder word holds.
            set(coding, listed & 1 << coding.index != 0 ? max(weight, self.weight(of: coding)) : weight)
            listed |= 1 << coding.index
        }
        for coding in ContentCoding.allCases where listed & 1 << coding.index == 0 {
            // Unless excluded, no coding at all is always acceptable, after whatever is listed.
            set(coding, anyOther ?? (coding == .identity ? 1 : 0))
        }
    }

    func write(to form: inout StoredFormWriter) { form.write(weights) }

    init(from form: inout StoredFormReader) throws(StoredFormError) { weights = try form.read() }

    package init(_ request: Fields) { self.init(request.section, bytes: request.bytes.span) }

    /// In thousandths; 0: not acceptable.
    package func weight(of coding: ContentCoding) -> Int { Int(weights >> coding.shift & 0x3FF) }

    package func accepts(_ coding: ContentCoding) -> Bool { weight(of: coding) > 0 }

    /// Nothing is liked better.
    func likesBest(_ coding: ContentCoding) -> Bool {
        let own = weight(of: coding)
        return own > 0 && ContentCoding.allCases.allSatisfy { weight(of: $0) <= own }
    }

    /// Every coding acceptable here was acceptable there; `identity` apart.
    func isCovered(by other: AcceptedCodings) -> Bool {
        ContentCoding.allCases.allSatisfy { $0 == .identity || !accepts($0) || other.accepts($0) }
    }

    private mutating func set(_ coding: ContentCoding, _ weight: Int) {
        weights = weights & ~(0x3FF << coding.shift) | UInt64(weight) << coding.shift
    }
}

extension ContentCoding {
    fileprivate var index: Int {
        switch self {
        case .identity: 0
        case .gzip: 1
        case .deflate: 2
        case .compress: 3
        case .br: 4
        case .zstd: 5
        }
    }
    fileprivate var shift: UInt64 { UInt64(index * 10) }
}
