import Message
package import Routing
import Tokens

/// Fetches a PAC file straight from its server: the routes depend on it. Names are looked up as this machine does, without `dns`.
///
/// - Parameters:
///   - time: for all of it, redirects included.
///   - authorities: a file of those that certify servers; nil: the system's.
///   - then: called once, on any thread.
@Sendable
package func fetchPAC(
    _ fetch: PACFetch, _ time: Duration, _ authorities: String?,
    then: @escaping @Sendable (PACDownload.Answer) -> Void
) {
    Task.detached { then(await answer(to: fetch, of: .pac, within: time, authorities)) }
}

/// Fetches a set of keys (RFC 7517) straight from its server, likewise.
@Sendable
package func fetchKeySet(
    _ fetch: PACFetch, _ time: Duration, _ authorities: String?,
    then: @escaping @Sendable (PACDownload.Answer) -> Void
) {
    Task.detached { then(await answer(to: fetch, of: .keySet, within: time, authorities)) }
}

/// What is fetched.
private enum Document {
    case pac, keySet

    var accept: String {
        switch self {
        case .pac: "application/x-ns-proxy-autoconfig, */*"
        case .keySet: "application/jwk-set+json, application/json"
        }
    }

    var bytesMax: Int {
        switch self {
        case .pac: PACMessageBuffer.scriptBytesMax
        case .keySet: JSONWebKeySet.bytesMax
        }
    }
}

private func answer(
    to fetch: PACFetch, of document: Document, within time: Duration, _ authorities: String?
) async -> PACDownload.Answer {
    let deadline = ContinuousClock.now + time
    do throws(ClientError) {
        let client = try Client(.direct(authorities: authorities))
        var hop = fetch.url
        var followed = 0
        while true {
            var request = Request(.get, String(decoding: hop.normalised, as: UTF8.self))
            request.fields.append("Accept", document.accept)
            for (name, value) in fetch.conditions(at: hop) { request.fields.append(name, value) }
            request.decodesGzip = true
            request.timeLimits.whole = max(.milliseconds(1), deadline - .now)
            let response = try await client.send(request)
            switch fetch.hop(
                at: hop, status: response.status, location: response.fields["Location"], followed: followed)
            {
            case .read:
                let script = try await response.body.collect(upTo: document.bytesMax)
                let version = PACDownload.Version(
                    from: hop, entityTag: response.fields["ETag"], lastModified: response.fields["Last-Modified"])
                return .script(script, version)
            case .unchanged: return .unchanged
            case .fail(let fault): return .failed(fault)
            case .follow(let next):
                hop = next
                followed += 1
            }
        }
    } catch {
        if case .bodyTooLarge = error { return .failed(.tooLong) }
        return .failed(.network(error.description))
    }
}
