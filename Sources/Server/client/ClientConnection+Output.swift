import CLarder
import Caching
import EventLoop
import Framing
import Glibc
import Message
import Storage
import Transaction

/// Sends what is queued, and the body behind it.
///
/// Everything here may find out that the client is gone, and close the connection: callers check `phase` before they go on. While
/// `writeEvent` waits for room in the socket, nothing is written; `onWritable` goes on.
extension ClientConnection {
    /// Queued bytes that the socket has not accepted yet.
    var unsentBytes: Int { output.count }

    /// Queues the bytes that `write` appends. `flush` sends them.
    func queue(_ write: (inout [UInt8]) -> Void) {
        // The queue is without its bytes while somebody else writes behind them.
        // `write` must not flush or queue anything itself.
        var bytes = output.lendBytes()
        write(&bytes)
        output.takeBack(bytes)
    }

    /// Waits until the socket accepts bytes again, for at most `timeouts.idle`; for less if others wait for this client.
    func waitForRoom() {
        guard phase != .closed else { return }
        precondition(
            unsafe unsentBytes > 0 || delivery != nil || transport?.hasUnsentBytes == true,
            "nothing waits for room in the socket")
        // A client that does not read holds up all other readers of the same window.
        let delaysOthers = delivery.map { $0.body.latest.isWindowed && $0.body.latest.readerCount > 1 } ?? false
        let snapshot = worker.snapshot
        worker.timers.schedule(
            self, after: delaysOthers ? snapshot.limits.delayingReaderTimeout : snapshot.configuration.timeouts.idle)
        watchReading()
        guard !writeEvent.isAdded else { return }
        if !writeEvent.isAssigned {
            let context = unsafe Unmanaged.passUnretained(self).toOpaque()
            unsafe transport!.assign(
                &writeEvent, on: worker.loop, .write,
                { _, _, context in
                    unsafe Unmanaged<ClientConnection>.fromOpaque(context!).takeUnretainedValue().onWritable()
                }, context)
        }
        writeEvent.add()
    }

    func onWritable() {
        writeEvent.remove()
        noteRoom()
        worker.timers.schedule(self, after: worker.snapshot.configuration.timeouts.idle)
        flush()
    }

    /// Sends as much as the socket accepts. Goes on by itself when the socket has room again or the body grows.
    func flush() {
        guard !writeEvent.isAdded, !isPostponed else { return }
        var made = 0
        while phase == .answering {
            guard delivery == nil || !worker.readers.isTurnOver else { return goOnLater() }
            switch step() {
            case .progressed:
                // Compressing and inflating take time from other connections of this worker.
                if delivery?.isTranscoded == true { made += 1 }
                guard made < ClientConnection.codingStepsPerTurnMax else { return goOnLater() }
            case .blocked:
                keepForSlowClient()
                return waitForRoom()
            case .waiting: return
            case .done: return outputDone()
            case .failed(let reason): return close(reason)
            }
        }
    }

    /// Steps of compressing or inflating for one client before others have their turn (`Transcoder.stepBytesMax` each).
    static let codingStepsPerTurnMax = 8

    /// Keeps a body that is sent from the disk: by the time the client has room, its segment may have been reclaimed. What was verified stays in its
    /// file, which is kept open. Anything else is loaded into memory, if that does not block; otherwise the bytes are read when they are
    /// needed, and the answer breaks off if they are gone.
    private func keepForSlowClient() {
        guard let delivery, !delivery.body.isResident, !delivery.body.isLarge, !holdFile(of: delivery) else { return }
        _ = delivery.body.load(waits: false)
    }

    /// Keeps the file of what is left of a body open. Returns false if it must be kept in memory.
    func holdFile(of delivery: Delivery) -> Bool {
        delivery.holdFile { fileRange(of: delivery.body, from: $0, limit: $1) }
    }

    /// Goes on sending in a later turn of the loop, unless the connection has closed by then.
    private func goOnLater() {
        isPostponed = true
        worker.readers.postpone(id)
    }

    func goOn() {
        isPostponed = false
        flush()
    }

    enum Step {
        /// Bytes were sent or made: go on.
        case progressed
        /// The socket accepts no more bytes.
        case blocked
        /// The body has no bytes yet. A wake follows.
        case waiting
        /// Everything queued has been sent, and the body has ended.
        case done
        /// The connection must be closed.
        case failed(CloseReason)
    }

    /// Makes and sends the next bytes.
    func step() -> Step {
        if unsafe transport?.hasUnsentBytes == true {
            switch unsafe transport?.flush() ?? .closed {
            case .bytes: break
            case .wouldBlock: return .blocked
            case .closed, .failed: return .failed(.clientLeft)
            }
        }
        guard let delivery else {
            guard unsentBytes > 0 else { return .done }
            return writeQueued()
        }
        // Hold the head back until the first piece has been made: if none can be, an error replaces the head.
        if delivery.isTranscoded && unsentBytes > 0 && answerBytesSent > 0 { return writeQueued() }
        // What is made of a body counts when it is made.
        if limits != nil, delivery.isTranscoded, roomUnderLimits() == 0 {
            return unsentBytes > 0 ? writeQueued() : .waiting
        }
        var framing: [UInt8] = []
        let next = delivery.next(framing: &framing)
        if !framing.isEmpty { output.append(framing) }
        switch next {
        case .bytes(let count):
            guard limits != nil else { return write(bodyBytes: count, of: delivery) }
            let room = roomUnderLimits()
            guard room > 0 else { return unsentBytes > 0 ? writeQueued() : .waiting }
            let left = bytesLeftUnderLimits
            guard left > 0 else { return breakTooLong() }
            return write(bodyBytes: min(count, room, left), of: delivery)
        case .made(let count):
            account.bodyBytes += count
            limits?.note(count, at: worker.wallTime.secondsSinceEpoch)
            if limits != nil, bytesLeftUnderLimits < 0 { return breakTooLong() }
            return unsentBytes > 0 ? writeQueued() : .progressed
        case .finished:
            if unsentBytes > 0 { return writeQueued() }
            endDelivery()
            return .done
        case .wait:
            if unsentBytes > 0 { return writeQueued() }
            if delivery.isTranscoded, !delivery.body.isResident, !delivery.lacksBytes { return awaitDisk(delivery) }
            return awaitBody()
        case .broken(let breakage):
            return breakDelivery(delivery, breakage)
        }
    }

    /// Handles a body that cannot be read to its end. If nothing of the answer has been sent, the exchange replaces it. Otherwise the
    /// connection closes, so that the client sees that its answer is incomplete (RFC 9112 §8).
    private func breakDelivery(_ broken: Delivery, _ breakage: Delivery.Breakage) -> Step {
        if case .undecodable = breakage, let record = broken.record { exchange?.markUndecodable(record) }
        guard let exchange, exchange.stream.takeBack() else {
            exchange?.markBroken()
            return .failed(.answerIncomplete)
        }
        exchange.replaceAnswer(of: broken.record, because: breakage)
        return .progressed
    }

    /// Sends what is queued, and behind it up to so many bytes of the body.
    private func write(bodyBytes most: Int, of delivery: Delivery) -> Step {
        let limit = min(most, ClientConnection.bytesAtOnceMax)
        let body = delivery.body
        if delivery.sendsByReference, let range = fileRange(of: body, from: delivery.offset, limit: limit) {
            return send(range, of: delivery)
        }
        if body.isResident {
            return unsafe send(limit, of: delivery) {
                unsafe body.vectors(from: delivery.offset, limit: limit, into: $0)
            }
        }
        if let range = delivery.heldRange(limit: limit) { return send(range, of: delivery) }
        switch pieceFromDisk(delivery, limit: limit) {
        case .bytes(let piece):
            return unsafe send(limit, of: delivery) {
                unsafe $0[0] = unsafe iovec(iov_base: .init(mutating: piece.baseAddress), iov_len: piece.count)
                return 1
            }
        // Send what is queued first.
        case .wouldBlock where unsentBytes > 0, .nothing where unsentBytes > 0: return writeQueued()
        case .wouldBlock: return awaitDisk(delivery)
        case .nothing: return delivery.mayBeFilled ? awaitBody() : goOnBehindDamage(delivery)
        }
    }

    /// How many bytes of a body one system call sends at most. A client that reads as fast as it is sent to lets the kernel take 10 MiB and
    /// more in one call, and nobody else would have a turn for milliseconds.
    static let bytesAtOnceMax = 1 << 20

    /// Sends what is queued, and behind it bytes of a file.
    private func send(_ range: FileRange, of delivery: Delivery) -> Step {
        let queued = unsentBytes
        let result = unsafe output.withBytes { unsafe transport?.send($0, range) ?? .closed }
        if case .failed(let code) = result, IO.isOfFile(code) {
            delivery.mustCopy = true
            return .progressed
        }
        return note(result, queued: queued, limit: range.count, of: delivery)
    }

    /// Bytes of a body that can be sent without a copy. Nil if they must be copied.
    func fileRange(of body: Body, from offset: Int, limit: Int) -> FileRange? {
        guard unsafe transport?.sendsFiles == true else { return nil }
        return body.fileRange(from: offset, limit: limit)
    }

    /// How many bytes of a body may be sent now. If there are none, `flush` is called when there is room.
    private func roomUnderLimits() -> Int {
        guard let limits else { return .max }
        let worker = worker
        let id = id
        return limits.room(on: worker.loop) { [unowned worker] in worker.clients[id]?.flush() }
    }

    /// How many bytes more the body of an answer may have.
    private var bytesLeftUnderLimits: Int {
        guard let max = limits?.responseBodyMax else { return .max }
        return Int(clamping: max) - account.bodyBytes
    }

    /// Breaks off a body of unknown length that is longer than a limit allows, so that the client sees that it is incomplete.
    private func breakTooLong() -> Step {
        exchange?.markBroken()
        return .failed(.answerTooLong)
    }

    /// Sends what is queued.
    private func writeQueued() -> Step {
        let queued = unsentBytes
        let result = unsafe output.withBytes { unsafe transport?.write($0) ?? .closed }
        return note(result, queued: queued, limit: 0, of: nil)
    }

    /// Sends what is queued, and behind it the bytes of the body, with one system call.
    ///
    /// - Parameters:
    ///   - limit: how many bytes of the body are sent at most.
    ///   - fill: puts them into vectors, and returns how many vectors it has used.
    private func send(
        _ limit: Int, of delivery: Delivery, _ fill: (UnsafeMutableBufferPointer<iovec>) -> Int
    ) -> Step {
        let queued = unsentBytes
        // Queued bytes precede those of the body on the wire, so the socket's count covers them first.
        let result = unsafe output.gather(into: worker.vectors, rest: fill) { count in
            unsafe transport?.writev(worker.vectors.baseAddress!, count) ?? .closed
        }
        return note(result, queued: queued, limit: limit, of: delivery)
    }

    /// Counts what the socket has accepted of the queued bytes, and of `limit` bytes of the body behind them.
    private func note(_ result: IOResult, queued: Int, limit: Int, of delivery: Delivery?) -> Step {
        switch result {
        case .bytes(0):
            return .failed(.clientLeft)
        case .bytes(let count):
            worker.counters.add(.bytesToClients, count)
            worker.readers.noteSent(count)
            answerBytesSent += count
            readingWatch?.written += UInt64(count)
            output.advance(by: min(count, queued))
            let ofBody = max(0, count - queued)
            if ofBody > 0 {
                account.bodyBytes += ofBody
                limits?.note(ofBody, at: worker.wallTime.secondsSinceEpoch)
                precondition(ofBody <= limit, "the socket accepted more bytes than it was offered")
                if account.outcome.isFromCache { worker.counters.add(.bytesFromCache, ofBody) }
                if let delivery, delivery.advance(by: ofBody) { output.append(Delivery.endOfChunk) }
            }
            // Only wakes a fetch that waits for this client, through the inbox: it never runs while this connection writes.
            exchange?.clientAcceptedBytes()
            return .progressed
        case .wouldBlock:
            return .blocked
        case .closed, .failed:
            return .failed(.clientLeft)
        }
    }

    private func pieceFromDisk(_ delivery: Delivery, limit: Int) -> Body.Piece {
        if let held = unsafe worker.heldFromDisk(delivery.body, from: delivery.offset) {
            return unsafe .bytes(UnsafeRawBufferPointer(rebasing: held.prefix(limit)))
        }
        worker.diskContent = nil
        return unsafe delivery.piece(limit: limit, room: worker.diskBuffer)
    }

    /// Handles a stored body that turned out to be damaged while it was being sent. If nothing of the answer has been sent, the exchange replaces
    /// it. Otherwise what is missing is fetched, or the connection closes if that is not possible.
    private func goOnBehindDamage(_ delivery: Delivery) -> Step {
        let tier = exchange?.request.tier ?? worker.zones[0].tier
        let isUnsent = exchange?.stream.takeBack() ?? false
        if !isUnsent, let exchange, let rescued = exchange.rescue(delivery) {
            delivery.goOn(with: rescued)
            return .progressed
        }
        if let record = delivery.record { tier.removeUnreadable(record, after: .damaged) }
        guard isUnsent, let exchange else {
            exchange?.markBroken()
            return .failed(.answerDamaged)
        }
        exchange.replaceAnswer(of: delivery.record, because: .gone)
        return .progressed
    }

    /// Has a thread of the back store read the next bytes. That thread gets the `DiskReading`, never the connection: the job that it posts
    /// finds the connection by its number, and does nothing if the connection has closed.
    private func awaitDisk(_ delivery: Delivery) -> Step {
        if delivery.isReading { return .waiting }
        let reading = delivery.beginReading()
        let inbox = worker.loop.inbox
        let worker = WorkerReference(worker)
        let id = id
        // A hit of the short way has no exchange, and is of the default zone.
        let tier = exchange?.request.tier ?? self.worker.zones[0].tier
        let isAccepted = tier.backStore?.perform {
            reading.read()
            inbox.post { worker.value.clients[id]?.flush() }
        }
        guard isAccepted == true else {
            exchange?.markBroken()
            return .failed(.answerIncomplete)
        }
        return .waiting
    }

    /// Waits until the body has more bytes. Its writer, on any thread, wakes this connection through its number.
    func awaitBody() -> Step {
        guard let delivery, delivery.ticket == nil else { return .waiting }
        if delivery.isAtHole {
            switch exchange?.fillHole(before: delivery) {
            case .progressed: return .progressed
            case .awaited, .fetching: break
            case .broken, nil:
                exchange?.markBroken()
                return .failed(.answerIncomplete)
            }
        }
        // A fetch that failed at once has replaced this delivery by an error, or has closed the connection.
        guard self.delivery === delivery else { return .waiting }
        guard let ticket = delivery.body.await(beyond: delivery.offset, worker.wakeReader(id)) else {
            return .progressed
        }
        delivery.ticket = ticket
        return .waiting
    }

    /// Goes on sending, because the body has grown or ended.
    func bodyGrew() {
        delivery?.ticket = nil
        flush()
    }

    /// Ends the delivery: no reader and no wake of it remains with the body.
    /// What is queued stays queued.
    func endDelivery() {
        guard let ended = delivery.take() else { return }
        ended.end(cancelling: true)
    }

    /// Everything queued has been sent. After an interim head the final one is still to come; otherwise the response ends.
    func outputDone() {
        if let exchange {
            guard exchange.isAnswered else { return }
            // The response ends when the rest of its request has been dropped. `flush` is called then.
            if exchange.discardsBody, !hasInputEnded { return exchange.answerSent() }
        }
        finishResponse()
    }
}
