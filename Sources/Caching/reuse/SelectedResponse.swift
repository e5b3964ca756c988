/// Which of several responses that match a request is used (RFC 9111 §4): the one with the later `Date`, or else the one that came later.
package func isMoreRecent(_ a: CachedResponse, than b: CachedResponse) -> Bool {
    a.date == b.date ? a.responseTime > b.responseTime : a.date > b.date
}
