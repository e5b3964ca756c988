import Accounts
import Caching
import Forwarding
import Message
import Releases
import Transaction

/// The minimum age of releases. It is judged when an answer is about to begin, from whatever source, so that no byte of a release that is too young
/// reaches a client, and one that has been stored meanwhile is served from the store when it opens.
extension Exchange {
    /// Whether the client may have the response. If it may not, refuses.
    func isReleased(_ fields: Fields, status: UInt16) -> Bool {
        guard let rule = request.releaseRule, !rule.kind.isIndex, let path = request.access.path else { return true }
        let (verdict, file) = rule.verdict(onFileWith: fields, status: status, path: path, now: worker.wallTime)
        switch verdict {
        case .passes: return true
        case .passesUndated:
            worker.counters.add(.releasesUndated)
            return true
        case .reported(let objection):
            report([Withheld(file, objection)])
            return true
        case .refused(let objection):
            withheld = Withheld(file, objection)
            refuse(objection == .undated ? .releaseUndated : .tooYoung)
            return false
        }
    }

    /// The rule says what it would refuse, and does not refuse it.
    func report(_ withheld: [Withheld]) {
        worker.counters.add(.releasesReported)
        // An index may have thousands. The newest come last.
        for withheld in withheld.suffix(5) {
            Diagnostics.info("min_age reports: \(withheld.text); \(Diagnostics.masked(request.uri))")
        }
    }

    /// Whether a response that is not stored may go on to the client. If it may not, refuses.
    func mayPass(_ response: ReceivedResponse) -> Bool {
        if isFilteredIndex(response.fields, status: response.status), request.method != .head {
            // Of what is not stored nobody knows whether it has the form of an index.
            return request.releaseRule?.kind.isCertainOfIndex == false || mayPassUnread()
        }
        return isReleased(response.fields, status: response.status)
    }
}
