import Access
import Caching
import EventLoop
import Framing
import Glibc
import Message
import Storage
import Transaction

/// The body of a response on its way from the origin to its sink.
extension Fetch {
    func readBody(_ connection: OriginConnection) -> Bool {
        if isBounded, let page = unsafe writablePage {
            return unsafe readIntoStore(connection, page)
        }
        guard let count = unsafe read(connection, into: worker.readBuffer) else { return false }
        unsafe consume(UnsafeRawBufferPointer(rebasing: worker.readBuffer[..<count]))
        endOfTurn()
        return state == .streaming
    }

    /// - Returns: how many bytes came; nil: none, and where that was the end it is dealt with.
    private func read(_ connection: OriginConnection, into room: UnsafeMutableRawBufferPointer) -> Int? {
        switch unsafe connection.read(into: room) {
        case .bytes(let count):
            worker.counters.add(.bytesFromOrigins, count)
            worker.loop.timers.schedule(self, after: snapshot.configuration.timeouts.idle)
            return count
        case .wouldBlock:
            return nil
        case .closed:
            bodyClosed()
            return nil
        case .failed:
            breakOff()
            return nil
        }
    }

    /// No more can come than is to come: the framing says it, or nobody knows how much that is.
    private var isBounded: Bool {
        switch length {
        case .length: true
        case .untilClose: total == nil
        case .none, .tunnel, .chunked: false
        }
    }

    /// Where the store takes the next bytes; nil: nothing is stored, or there is no room.
    var writablePage: UnsafeMutableRawBufferPointer? {
        switch sink {
        case .store(let record): unsafe record.body.writable(Worker.readBufferBytes)
        case .fill(let fill, _): unsafe fill.writable(Worker.readBufferBytes)
        case .undecided, .relay, .discard: nil
        }
    }

    func commit(_ count: Int) {
        received += UInt64(count)
        owed = owed.map { $0 - UInt64(count) }
        switch sink {
        case .store(let record): record.body.commit(count)
        case .fill(let fill, _): fill.commit(count)
        case .undecided, .relay, .discard: break
        }
    }

    /// Straight into the page: the bytes are not copied again.
    func readIntoStore(_ connection: OriginConnection, _ page: UnsafeMutableRawBufferPointer) -> Bool {
        var room = unsafe page
        if case .length = length, UInt64(page.count) > remaining {
            unsafe room = unsafe UnsafeMutableRawBufferPointer(rebasing: page[..<Int(remaining)])
        }
        guard let count = unsafe read(connection, into: room) else { return false }
        commit(count)
        if case .length = length {
            remaining -= UInt64(count)
            if remaining == 0 { complete(leftover: hasBytesBehind(connection) ? 1 : 0) }
        }
        endOfTurn()
        return state == .streaming
    }

    /// Reads on behind a body that was read into a page, where there was room for its own bytes only. What stands behind the
    /// body would be taken for the answer to the next request if the connection were lent to one.
    private func hasBytesBehind(_ connection: OriginConnection) -> Bool {
        guard persists else { return false }
        return switch unsafe connection.read(into: worker.readBuffer) {
        case .wouldBlock: false
        case .bytes, .closed, .failed: true
        }
    }

    func consume(_ bytes: UnsafeRawBufferPointer) {
        switch length {
        case .none, .tunnel:
            complete(leftover: bytes.count)
        case .length:
            let count = Int(min(UInt64(bytes.count), remaining))
            remaining -= UInt64(count)
            if count > 0 { unsafe deliver(UnsafeRawBufferPointer(rebasing: bytes[..<count])) }
            if remaining == 0 && state == .streaming { complete(leftover: bytes.count - count) }
        case .untilClose:
            if unsafe !bytes.isEmpty { unsafe deliver(bytes) }
        case .chunked:
            unsafe consumeChunked(bytes)
        }
    }

    func consumeChunked(_ bytes: UnsafeRawBufferPointer) {
        var rest = unsafe bytes.bindMemory(to: UInt8.self)
        while state == .streaming {
            do throws(FramingError) {
                switch unsafe try decoder!.step(rest.span) {
                case .needMore:
                    return
                case .data(let consumed, let range):
                    unsafe deliver(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: rest[range])))
                    unsafe rest = unsafe UnsafeBufferPointer(rebasing: rest[consumed...])
                case .end(let consumed):
                    complete(leftover: rest.count - consumed)
                }
            } catch {
                worker.counters.count(error)
                return breakOff()
            }
        }
    }

    func deliver(_ bytes: UnsafeRawBufferPointer) {
        // A part in chunks may carry more than its Content-Range says. Passed on, that would be taken for the answer to the
        // client's next request.
        if let total, UInt64(bytes.count) > total - received { return giveUp(keepsPart: false) }
        if let owed {
            guard UInt64(bytes.count) <= owed else { return giveUp(keepsPart: false) }
            self.owed = owed - UInt64(bytes.count)
        }
        received += UInt64(bytes.count)
        switch sink {
        case .relay:
            unsafe exchange?.relay(bytes)
        case .store(let record):
            switch unsafe record.body.append(bytes) {
            case .appended: break
            case .full, .tooLarge: unsafe outgrow(record, bytes)
            }
        case .fill(let fill, _):
            switch unsafe fill.append(bytes) {
            case .appended: break
            case .full: giveUp()
            case .tooLarge: giveUp(keepsPart: false)
            }
        case .discard, .undecided:
            break
        }
    }

    /// The body is larger than the store takes: it leaves the store and streams through a window to those who read it.
    func outgrow(_ record: StoredResponse, _ bytes: UnsafeRawBufferPointer) {
        worker.counters.add(.storingRefused)
        record.body.abandonStorage(window: snapshot.limits.relayBufferBytesMax)
        request.tier.remove(record)
        if case .appended = unsafe record.body.append(bytes) { return }
        giveUp()
    }

    /// After one read: whoever reads what arrived is told, and a reader that is too slow holds the origin back.
    func endOfTurn() {
        switch sink {
        case .relay:
            guard let exchange else { return }
            exchange.relayTurnEnded()
            if state == .streaming && exchange.isBehind { pause() }
        case .store(let record):
            exchange?.bodyAdvanced()
            if state == .streaming && isForNobody(record) { return abortStored(record) }
            holdBack(record.body)
        case .fill(let fill, _):
            exchange?.bodyAdvanced()
            fill.body.isLeftByDisk ? passOn(fill) : holdBack(fill.body)
        case .discard, .undecided:
            break
        }
    }

    /// Where those who take the body are behind, the origin waits.
    private func holdBack(_ body: Body) {
        guard state == .streaming, body.writerShouldPause, let id else { return }
        pause()
        let inbox = worker.loop.inbox
        let worker = WorkerReference(worker)
        body.awaitRoom(Wake { inbox.post { worker.value.fetches[id]?.resume() } })
    }

    /// The disk can not take it any more. The client that asked gets it by way of memory, which has no room for all: what it took is let
    /// go, and the origin waits for it.
    private func passOn(_ fill: Fill) {
        guard state == .streaming else { return }
        guard let taken = exchange?.offsetTaken(of: fill.body) else { return giveUp() }
        fill.letGo(before: taken)
        if fill.position - taken > Fetch.passedOnBytesMax { pause() }
    }

    /// Bytes that the origin may be ahead of the client then.
    private static let passedOnBytesMax = 1 << 20

    /// The client took some of the body.
    func clientTook() {
        guard isPaused, let id, case .fill(let fill, _) = sink, fill.body.isLeftByDisk else { return }
        guard let taken = exchange?.offsetTaken(of: fill.body), fill.position - taken <= Fetch.passedOnBytesMax / 2
        else { return }
        let worker = WorkerReference(worker)
        // Not from within its writing.
        worker.value.loop.inbox.post { worker.value.fetches[id]?.resume() }
    }

    /// It is no longer stored, and nobody reads it.
    func isForNobody(_ record: StoredResponse) -> Bool { record.body.isWindowed && !record.body.hasReaders }

    func abortStored(_ record: StoredResponse) {
        guard state == .streaming else { return }
        if let connection = finish() { worker.origins.discard(connection) }
        record.body.fail()
        exchange = nil
    }

    func pause() {
        guard !isPaused else { return }
        isPaused = true
        connection?.pauseReading()
    }

    func resume() {
        guard isPaused, state == .streaming else { return }
        isPaused = false
        connection?.resumeReading()
        if connection?.mustBeDrained == true { originReadable() }
    }
}
