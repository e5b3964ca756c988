import Forwarding
import Storage

/// The bodies of the pages that are the same for every client, in the form in which a `Delivery` reads them.
///
/// A bundle of certificates has some 200 KB. All deliveries of a worker read one copy, so that many slow clients cost no memory. They hold
/// the body while they read it; a reload forgets it.
struct PageBodies {
    private var bodies: [[UInt8]: Body] = [:]

    /// The body of a page. Nil if the page was made for one client, or if memory has no room: then the bytes are queued like a head.
    mutating func body(of page: PageResponse, tier: Tiers) -> Body? {
        guard let tag = page.fixedTag, !page.body.isEmpty else { return nil }
        if let body = bodies[tag] { return body }
        guard let body = tier.makeBody(expectedLength: page.body.count, lengthMax: page.body.count),
            unsafe page.body.withUnsafeBytes({ unsafe body.append($0) }) == .appended, body.finish()
        else { return nil }
        bodies[tag] = body
        return body
    }

    mutating func removeAll() { bodies = [:] }
}
