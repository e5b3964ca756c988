package import Message

/// How one stored variant serves requests whose `Accept-Encoding` is not the one it was selected by.
///
/// RFC 9111 §4.1 lets a cache match what it knows to mean the same. Here that goes further than by spelling: three browsers
/// with three lists share the one variant that all of them accept, and a gzip variant serves those who accept no gzip at all.
package struct CodingVariant: Sendable, Equatable {
    /// All that `Vary` nominates but `Accept-Encoding`.
    private let others: SecondaryKey
    /// What the origin could choose from.
    private let offered: AcceptedCodings

    /// nil where `Accept-Encoding` is not nominated: then the secondary key says all there is.
    package init?(_ vary: Vary, request: Fields) {
        guard case .names(let names) = vary, vary.nominatesAcceptEncoding else { return nil }
        others = SecondaryKey(.names(names.filter { $0.name != .acceptEncoding }), request: request)
        offered = AcceptedCodings(request)
    }

    package func write(to form: inout StoredFormWriter) {
        others.write(to: &form)
        offered.write(to: &form)
    }

    package init(from form: inout StoredFormReader) throws(StoredFormError) {
        others = try SecondaryKey(from: &form)
        offered = try AcceptedCodings(from: &form)
    }

    /// Whether the variant, stored under these terms, may be used for the request; `chooseCoding` then says in what form.
    package func serves(_ fields: Fields, _ request: CacheRequest, _ terms: CodingTerms) -> Bool {
        others.matches(fields) && suits(AcceptedCodings(fields), request, terms)
    }

    private func suits(_ accepted: AcceptedCodings, _ request: CacheRequest, _ terms: CodingTerms) -> Bool {
        switch terms.coding {
        case .identity:
            // The origin could have chosen whatever this client accepts, and did not.
            return accepted.accepts(.identity) && accepted.isCovered(by: offered)
        case .single(let coding):
            return accepted.likesBest(coding)
                || chooseCoding(of: terms, length: nil, for: accepted, request, compression: .no) == .inflated
        case .opaque:
            return false
        }
    }
}
