package import Message

/// Decides whether a stored variant serves a request whose `Accept-Encoding` differs from that of the request it was stored for.
///
/// RFC 9111 §4.1 lets a cache match fields that it knows to mean the same. This goes further than spelling: browsers with different lists
/// share one variant that all of them accept, and a gzip variant serves clients that do not accept gzip.
package struct CodingVariant: Sendable, Equatable {
    /// The fields that `Vary` names, except `Accept-Encoding`.
    private let others: SecondaryKey
    /// The codings from which the origin could choose.
    private let offered: AcceptedCodings

    /// Returns nil if `Vary` does not name `Accept-Encoding`. The secondary key is sufficient then.
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

    /// Whether the variant, which is stored under these terms, may be used for the request. `chooseCoding` then chooses the form.
    package func serves(_ fields: Fields, _ request: CacheRequest, _ terms: CodingTerms) -> Bool {
        others.matches(fields) && suits(AcceptedCodings(fields), request, terms)
    }

    private func suits(_ accepted: AcceptedCodings, _ request: CacheRequest, _ terms: CodingTerms) -> Bool {
        switch terms.coding {
        case .identity:
            // The origin could have chosen any coding that this client accepts, and chose none.
            return accepted.accepts(.identity) && accepted.isCovered(by: offered)
        case .single(let coding):
            return accepted.likesBest(coding)
                || chooseCoding(of: terms, length: nil, for: accepted, request, compression: .no) == .inflated
        case .opaque:
            return false
        }
    }
}
