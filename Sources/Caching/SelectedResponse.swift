/// Which of several that match a request is to be used (RFC 9111 §4): that with the later `Date`, or that came later.
package func isMoreRecent(_ a: CachedResponse, than b: CachedResponse) -> Bool {
    a.date == b.date ? a.responseTime > b.responseTime : a.date > b.date
}
