package import Message

/// The content codings that a client accepts, each with its weight (RFC 9110 §12.5.3).
///
/// By the RFC, a request without the field accepts every coding, and a request with an empty field accepts none. In practice, a client
/// that does not send the field cannot decode: it counts as one that wants the content without a coding.
package struct AcceptedCodings: Sendable, Equatable {
    /// Ten bits for each coding: its weight in thousandths.
    private var weights: UInt64 = 0
    /// The request does not have the field.
    private(set) var namesNone = false

    package init(_ request: FieldSection, bytes: borrowing Span<UInt8>) {
        guard let value = request.joined(.acceptEncoding, bytes) else {
            set(.identity, 1000)
            namesNone = true
            return
        }
        var listed = 0
        var anyOther: Int?
        for (token, weight) in qualityValues(value[...]) {
            if token.elementsEqual([Byte.asterisk]) { anyOther = max(anyOther ?? 0, weight) }
            guard let coding = ContentCoding(name: token) else { continue }
            // If a coding is listed twice, perhaps once as x-gzip, the greater weight counts.
            set(coding, listed & 1 << coding.index != 0 ? max(weight, self.weight(of: coding)) : weight)
            listed |= 1 << coding.index
        }
        for coding in ContentCoding.allCases where listed & 1 << coding.index == 0 {
            // Unless it is excluded, sending no coding is always acceptable, after everything that is listed.
            set(coding, anyOther ?? (coding == .identity ? 1 : 0))
        }
    }

    /// What is accepted, however it is said.
    package static func == (a: AcceptedCodings, b: AcceptedCodings) -> Bool { a.weights == b.weights }

    func write(to form: inout StoredFormWriter) { form.write(weights) }

    init(from form: inout StoredFormReader) throws(StoredFormError) { weights = try form.read() }

    package init(_ request: Fields) { self.init(request.section, bytes: request.bytes.span) }

    /// The weight in thousandths. Zero if the coding is not acceptable.
    package func weight(of coding: ContentCoding) -> Int { Int(weights >> coding.shift & 0x3FF) }

    package func accepts(_ coding: ContentCoding) -> Bool { weight(of: coding) > 0 }

    /// Whether no other coding has a greater weight.
    func likesBest(_ coding: ContentCoding) -> Bool {
        let own = weight(of: coding)
        return own > 0 && ContentCoding.allCases.allSatisfy { weight(of: $0) <= own }
    }

    /// Whether `other` accepts every coding that this accepts, apart from `identity`.
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
