import Caching
import EventLoop
import Forwarding
import Message
import Releases
import Storage
import Transaction

/// Indexes of releases: a client gets the stored index without what is too young.
///
/// An index is served when it is whole, because its head depends on all of it: whether it goes out as the origin sent it, with the validators of
/// the origin, or without something and with a tag of its own.
extension Exchange {
    /// The response that the client gets for a stored one: itself, or what is left of an index. Returns nil if the request was refused, or if the answer
    /// has to wait; `serve` is called then.
    func released(_ record: StoredResponse, else serve: @escaping () -> Void) -> StoredResponse? {
        guard let rule = request.releaseRule else { return record }
        guard rule.kind.isIndex else {
            return isReleased(record.fields, status: record.cached.status) ? record : nil
        }
        guard isFilteredIndex(record.fields, status: record.cached.status) else { return record }
        let body = record.body.latest
        switch body.state {
        case .complete: return filtered(record, body, rule, else: serve)
        case .failed: refuse(.responseIncomplete)
        case .growing, .partial, .moved: wait(for: body, of: record, then: serve)
        }
        return nil
    }

    /// Whether the response is an index from which releases are removed. Errors are none, and an index that is not JSON says no times: of that
    /// the files alone are judged.
    func isFilteredIndex(_ fields: Fields, status: UInt16) -> Bool {
        guard request.releaseRule?.kind.isIndex == true, status == 200, let type = fields.first(.contentType) else {
            return false
        }
        return IndexForm(contentType: type) == .json
    }

    private func filtered(
        _ record: StoredResponse, _ body: Body, _ rule: ReleaseRule, else serve: @escaping () -> Void
    ) -> StoredResponse? {
        let indexes = worker.shared.filteredIndexes
        let now = worker.wallTime
        switch indexes.ask(about: body, rule, now: now, wake: wakeForIndex()) {
        case .ready(let result):
            if case .gone = result.content {
                request.tier.remove(record)
                refetch()
                return nil
            }
            return response(of: record, result)
        case .wait: break
        case .begin:
            let work = IndexFiltering(
                body: body, coding: StoredCoding(of: record.fields), rule: rule, uri: request.uri, now: now,
                tier: request.tier.memory)
            // If the pool's queue is full, this worker does the work: every other answer would be wrong or none.
            if !worker.shared.pool.submit({ indexes.finish(body, rule, work.run()) }) {
                indexes.finish(body, rule, work.run())
            }
        }
        detachFetch()
        waiting = .index(nil, then: serve)
        return nil
    }

    private func response(of record: StoredResponse, _ result: FilteredIndexes.Result) -> StoredResponse? {
        if request.releaseRule?.minimumAge.isReportOnly == true, !result.withheld.isEmpty {
            report(result.withheld)
        } else if result.hasUndated {
            worker.counters.add(.releasesUndated)
        }
        switch result.content {
        case .asStored: return record
        case .edited(let body, let tag):
            worker.counters.add(.releasesRemoved)
            return record.filtered(body, tag: tag)
        case .unreadable: return mayPassUnread() ? record : nil
        case .gone, .noRoom:
            refuse(.tooManyRequests)
            return nil
        }
    }

    /// Whether an index that cannot be filtered goes out as it is. The files that it names are judged when they are asked for.
    func mayPassUnread() -> Bool {
        guard let rule = request.releaseRule?.minimumAge, rule.undated == .refuse, !rule.isReportOnly else {
            worker.counters.add(.releasesUndated)
            return true
        }
        withheld = Withheld("the releases of the index", .undated)
        refuse(.releaseUndated)
        return false
    }

    // MARK: waiting

    /// Waits until the body is whole, and calls `serve`.
    private func wait(for body: Body, of record: StoredResponse, then serve: @escaping () -> Void) {
        // It outgrew the store and goes to its readers piece by piece; this request is none of them.
        guard !body.isWindowed else { return refuse(.responseIncomplete) }
        // The fetch goes on for the store.
        detachFetch()
        let last = body.state == .partial ? max(0, (body.expectedLength ?? 1) - 1) : .max
        if let ticket = body.await(beyond: last, wakeForIndex()) {
            waiting = .index((body, ticket), then: serve)
        } else if body.state == .partial {
            // Nobody fetches what is missing. An index is asked for as a whole.
            request.tier.remove(record)
            refetch()
        } else {
            serve()
        }
    }

    private func wakeForIndex() -> Wake {
        let inbox = worker.loop.inbox
        let worker = WorkerReference(worker)
        let address = stream.address
        return Wake { inbox.post { worker.value.exchange(at: address)?.indexIsReady() } }
    }

    /// The index is whole, or has been filtered, or neither comes.
    private func indexIsReady() {
        guard case .index(_, let serve) = waiting else { return }
        waiting = .nothing
        serve()
    }
}
