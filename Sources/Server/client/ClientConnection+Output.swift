import CLarder
import Caching
import EventLoop
import Framing
import Glibc
import Message
import Storage
import Transaction

/// What goes out: bytes that are queued, and a stored body behind them.
extension ClientConnection {
    /// Bytes that the client has not taken yet.
    var unsentBytes: Int { output.count }

    /// Adds bytes to what goes out next; `flush` sends.
    func queue(_ bytes: UnsafeRawBufferPointer) { unsafe output.append(bytes) }
    func queue(_ write: (inout [UInt8]) -> Void) { output.append(write) }

    /// Sends what is queued and these bytes at once; what the socket does not take is kept.
    func send(_ bytes: UnsafeRawBufferPointer) {
        guard !writeEvent.isAdded else { return unsafe queue(bytes) }
        let queued = unsentBytes
        let result = unsafe output.gather(into: worker.vectors) { vectors in
            unsafe vectors[0] = unsafe iovec(iov_base: .init(mutating: bytes.baseAddress), iov_len: bytes.count)
            return 1
        } send: { count in
            unsafe transport?.writev(worker.vectors.baseAddress!, count) ?? .closed
        }
        var sent = 0
        switch result {
        case .bytes(let count): sent = count
        case .wouldBlock: break
        case .closed, .failed: return close(.clientLeft)
        }
        worker.counters.add(.bytesToClients, sent)
        answerBytesSent += sent
        output.advance(by: min(sent, queued))
        let ofBytes = max(0, sent - queued)
        if ofBytes < bytes.count { unsafe queue(UnsafeRawBufferPointer(rebasing: bytes[ofBytes...])) }
        if unsentBytes > 0 { waitForRoom() }
    }

    func waitForRoom() {
        guard phase != .closed else { return }
        // One that reads nothing of a body that streams through a window holds up all who read the same.
        let isInTheWay = delivery.map { $0.body.isWindowed && $0.body.readerCount > 1 } ?? false
        worker.loop.timers.schedule(
            self, after: isInTheWay ? .seconds(5) : worker.snapshot.configuration.timeouts.idle)
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
        worker.loop.timers.schedule(self, after: worker.snapshot.configuration.timeouts.idle)
        flush()
    }

    /// Sends as much as the socket takes; goes on by itself when it has room or the body grows.
    func flush() {
        guard !writeEvent.isAdded else { return }
        var made = 0
        while phase == .answering {
            switch step() {
            case .progressed:
                // Making another coding takes time that is others' as well.
                if delivery?.isTranscoded == true { made += 1 }
                guard made < ClientConnection.codingStepsPerTurnMax else { return flushLater() }
            case .blocked:
                keepForSlowClient()
                return waitForRoom()
            case .waiting: return
            case .done: return outputDone()
            case .failed(let reason): return close(reason)
            }
        }
    }

    static let codingStepsPerTurnMax = 8

    /// When there is room again, what goes out from the disk may stand elsewhere, for its segment was reclaimed: it comes into memory
    /// while it is at hand. Where it is not, it is read when it is wanted, as long as it stands there.
    private func keepForSlowClient() {
        guard let delivery, !delivery.body.isResident, !delivery.body.isLarge else { return }
        _ = delivery.body.load(waits: false)
    }

    private func flushLater() {
        let inbox = worker.loop.inbox
        let worker = WorkerReference(worker)
        let id = id
        inbox.post { worker.value.clients[id]?.flush() }
    }

    enum Step {
        case progressed, blocked, waiting, done
        case failed(CloseReason)
    }

    func step() -> Step {
        guard let delivery else {
            guard unsentBytes > 0 else { return .done }
            return write(bodyBytes: 0)
        }
        // The head waits for the first piece: where none can be made, an error takes its place.
        if delivery.isTranscoded && unsentBytes > 0 && answerBytesSent > 0 { return write(bodyBytes: 0) }
        switch output.append({ delivery.next(framing: &$0) }) {
        case .bytes(let count):
            return write(bodyBytes: count)
        case .made(let count):
            account.bodyBytes += count
            return unsentBytes > 0 ? write(bodyBytes: 0) : .progressed
        case .finished:
            if unsentBytes > 0 { return write(bodyBytes: 0) }
            endDelivery()
            return .done
        case .wait:
            if unsentBytes > 0 { return write(bodyBytes: 0) }
            if delivery.isTranscoded, !delivery.body.isResident, !delivery.isBeforeHole { return awaitDisk(delivery) }
            return awaitBody()
        case .broken(let breakage):
            return breakDelivery(delivery, breakage)
        }
    }

    /// The body cannot be read to its end. Where nothing of the answer is out, the exchange answers otherwise; if some of it is, the
    /// client must see by the end of the connection that its answer is not whole (RFC 9112 §8).
    private func breakDelivery(_ broken: Delivery, _ breakage: Delivery.Breakage) -> Step {
        if case .undecodable = breakage, let record = broken.record { exchange?.markUndecodable(record) }
        guard let exchange, exchange.stream.takeBack() else {
            exchange?.markBroken()
            return .failed(.answerIncomplete)
        }
        exchange.replaceAnswer(of: broken.record, because: breakage)
        return .progressed
    }

    func write(bodyBytes: Int) -> Step {
        let queued = unsentBytes
        var piece = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
        if bodyBytes > 0, let delivery, !delivery.body.isResident {
            switch pieceFromDisk(delivery, limit: bodyBytes) {
            case .bytes(let bytes): unsafe piece = unsafe bytes
            // What is queued goes out first.
            case .wouldBlock where queued == 0: return awaitDisk(delivery)
            case .nothing where queued == 0: return delivery.body.isLarge ? awaitBody() : breakDamaged(delivery)
            case .wouldBlock, .nothing: break
            }
        }
        let result = unsafe output.gather(into: worker.vectors) { vectors in
            if unsafe !piece.isEmpty {
                unsafe vectors[0] = unsafe iovec(iov_base: .init(mutating: piece.baseAddress), iov_len: piece.count)
                return 1
            }
            guard bodyBytes > 0, let delivery, delivery.body.isResident else { return 0 }
            return unsafe delivery.body.vectors(from: delivery.offset, limit: bodyBytes, into: vectors)
        } send: { count in
            unsafe transport?.writev(worker.vectors.baseAddress!, count) ?? .closed
        }
        switch result {
        case .bytes(0):
            return .failed(.clientLeft)
        case .bytes(let count):
            worker.counters.add(.bytesToClients, count)
            answerBytesSent += count
            output.advance(by: min(count, queued))
            let ofBody = max(0, count - queued)
            if ofBody > 0 {
                account.bodyBytes += ofBody
                if account.outcome.isFromCache { worker.counters.add(.bytesFromCache, ofBody) }
                if let delivery { output.append { delivery.advance(by: ofBody, framing: &$0) } }
            }
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

    /// What was right when the head went out can not be read any more: the client must see that (RFC 9112 §8).
    private func breakDamaged(_ delivery: Delivery) -> Step {
        if let record = delivery.record { exchange?.request.tier.removeUnreadable(record, after: .damaged) }
        guard let exchange, exchange.stream.takeBack() else {
            exchange?.markBroken()
            return .failed(.answerDamaged)
        }
        exchange.replaceAnswer(of: delivery.record, because: .gone)
        return .progressed
    }

    /// The bytes are on the disk: somebody who may block reads them.
    private func awaitDisk(_ delivery: Delivery) -> Step {
        if delivery.isReading { return .waiting }
        let reading = delivery.beginReading()
        let inbox = worker.loop.inbox
        let worker = WorkerReference(worker)
        let id = id
        let isAccepted = exchange?.request.tier.backStore?.perform {
            reading.read()
            inbox.post { worker.value.clients[id]?.flush() }
        }
        guard isAccepted == true else {
            exchange?.markBroken()
            return .failed(.answerIncomplete)
        }
        return .waiting
    }

    /// The body is not there yet: its writer, on whatever thread, will say when there is more.
    func awaitBody() -> Step {
        guard let delivery, delivery.ticket == nil else { return .waiting }
        if delivery.isBeforeHole {
            switch exchange?.fillHole(before: delivery) {
            case .progressed: return .progressed
            case .awaited, .fetching: break
            case .broken, nil:
                exchange?.markBroken()
                return .failed(.answerIncomplete)
            }
        }
        // A fetch that failed at once has put an error in place of this delivery, or has closed the connection.
        guard self.delivery === delivery else { return .waiting }
        guard let ticket = delivery.body.await(beyond: delivery.offset, worker.wakeReader(id)) else {
            return .progressed
        }
        delivery.ticket = ticket
        return .waiting
    }

    func bodyGrew() {
        delivery?.ticket = nil
        flush()
    }

    func endDelivery() {
        delivery?.end(cancelling: true)
        delivery = nil
    }

    /// Everything queued is out. Where that was an interim head, the answer is still to come.
    func outputDone() {
        if let exchange, !exchange.isAnswered { return }
        finishResponse()
    }
}
