import CLarder
import Caching
import EventLoop
import Framing
import Glibc
import Message
import Storage
import Transaction

/// One client's connection: reads requests, one after the other, and writes their answers in order (RFC 9112 §9.3).
///
/// ```
/// idle ─head─▶ answering ─last byte─▶ idle
///   │              ├──▶ tunnelling (the socket goes to a relay)
///   │              └──▶ lingering ─▶ closed
///   └──▶ closed
/// ```
///
/// A hit begins and ends within one callback: one read, one write. Whatever has to wait lives in an `Exchange`.
final class ClientConnection: TimedObject {
    let worker: Worker
    let id: ConnectionID
    let peer: IPAddress?
    enum Phase { case idle, answering, tunnelling, lingering, closed }
    private(set) var phase: Phase = .idle
    private var fd: CInt
    private var readEvent = IOEvent()
    private var writeEvent = IOEvent()
    /// Bytes received and not yet understood: part of a head, pipelined requests, a body that can not be sent on yet.
    private var inbound: [UInt8] = []
    private var progress = HeadProgress()
    /// Bytes of heads and framing that the socket did not take yet.
    private var pending: [UInt8] = []
    private var pendingOffset = 0
    /// A stored body that goes out behind what is queued.
    var delivery: Delivery?
    private(set) var exchange: Exchange?
    /// Counts the exchanges, to tell one from the next.
    private(set) var exchangeNumber: UInt32 = 0
    /// The connection stays open after the response under way.
    var persists = true
    private var isProcessing = false
    private var requestsAnswered = 0
    var account = Account()

    /// False: not among those who may use the proxy at all; it is told so, and nothing else.
    let isAdmitted: Bool

    init(worker: Worker, id: ConnectionID, fd: CInt, peer: IPAddress?, isAdmitted: Bool) {
        self.isAdmitted = isAdmitted
        self.worker = worker
        self.id = id
        self.fd = fd
        self.peer = peer
    }

    /// The exchange under way, if it is still the one of that number.
    func exchange(_ number: UInt32) -> Exchange? { number == exchangeNumber ? exchange : nil }

    /// No request has begun; at most a part of a head is there.
    var isIdle: Bool { phase == .idle }

    func start() {
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe readEvent.assign(
            worker.loop, fd: fd, .read,
            { _, _, context in
                unsafe Unmanaged<ClientConnection>.fromOpaque(context!)._withUnsafeGuaranteedRef { $0.onReadable() }
            }, context)
        readEvent.add()
        worker.loop.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientHead)
    }

    // MARK: reading

    private func onReadable() {
        switch unsafe IO.read(fd, into: worker.readBuffer) {
        case .bytes(let count):
            worker.counters.add(.bytesFromClients, count)
            unsafe received(UnsafeRawBufferPointer(start: worker.readBuffer.baseAddress, count: count))
        case .wouldBlock:
            return
        case .closed, .failed:
            close()
        }
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        switch phase {
        case .idle:
            if inbound.isEmpty {
                let consumed = unsafe process(bytes)
                if consumed < bytes.count { unsafe keep(UnsafeRawBufferPointer(rebasing: bytes[consumed...])) }
            } else {
                unsafe inbound.append(contentsOf: bytes)
                processInbound()
            }
            exchange?.uploadMore()
            if inbound.count >= inboundBytesMax { pauseReading() }
        case .answering:
            unsafe inbound.append(contentsOf: bytes)
            worker.loop.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientIdle)
            exchange?.uploadMore()
            if inbound.count >= inboundBytesMax { pauseReading() }
        case .lingering:
            lingerBytes += bytes.count
            if lingerBytes > ClientConnection.lingerBytesMax { close() }
        case .tunnelling, .closed:
            return
        }
    }

    private func keep(_ bytes: UnsafeRawBufferPointer) {
        guard phase != .closed && phase != .lingering else { return }
        unsafe inbound.append(contentsOf: bytes)
        // An incomplete head has its time from the first byte on, however slowly the rest drips in.
        if phase == .idle {
            worker.loop.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientHead)
        }
    }

    /// The client has sent more than the request under way.
    var hasUnreadBytes: Bool { hasMoreInTurn || !inbound.isEmpty }
    private var hasMoreInTurn = false

    /// What is received and not understood yet; what is left of it is put back before anything else is read.
    func takeInbound() -> [UInt8] {
        defer { inbound = [] }
        return inbound
    }

    func putBack(_ bytes: [UInt8]) { inbound = inbound.isEmpty ? bytes : bytes + inbound }

    /// Room for a head that is not whole, or for requests that wait for their turn.
    private var inboundBytesMax: Int {
        max(worker.snapshot.limits.pipelinedBytesMax, worker.snapshot.limits.headBytesMax)
    }

    func pauseReading() { readEvent.remove() }
    func resumeReading() { if phase == .answering || phase == .idle { readEvent.add() } }

    private func processInbound() {
        let bytes = inbound
        inbound = []
        let consumed = unsafe bytes.withUnsafeBytes { unsafe process($0) }
        guard consumed < bytes.count, phase != .closed, phase != .lingering else { return }
        // A new head has begun, behind a request that was whole: it has its own time.
        if consumed > 0, phase == .idle {
            worker.loop.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientHead)
        }
        // What came meanwhile is behind what is kept.
        inbound = bytes[consumed...] + inbound
    }

    /// Answers the requests in `bytes` as long as each is done at once.
    /// - Returns: how many bytes are used up.
    private func process(_ bytes: UnsafeRawBufferPointer) -> Int {
        isProcessing = true
        defer { isProcessing = false }
        var consumed = 0
        var requests = 0
        while phase == .idle && consumed < bytes.count {
            guard unsafe requests < worker.scratch.pointee.limits.requestsPerTurnMax else {
                worker.loop.afterTurn { [self] in continueReading() }
                break
            }
            let rest = unsafe UnsafeBufferPointer(rebasing: bytes.bindMemory(to: UInt8.self)[consumed...])
            var progress = progress
            do throws(FramingError) {
                let isComplete = unsafe try parseRequestHead(
                    rest.span, into: &worker.scratch.pointee.requestHead, progress: &progress,
                    limits: worker.scratch.pointee.limits)
                self.progress = isComplete ? HeadProgress() : progress
                guard isComplete else { break }
            } catch {
                refuse(violation: error)
                return bytes.count
            }
            let headBytes = unsafe worker.scratch.pointee.requestHead.byteCount
            consumed += headBytes
            requests += 1
            hasMoreInTurn = consumed < bytes.count
            unsafe answer(UnsafeBufferPointer(rebasing: rest[..<headBytes]))
        }
        return consumed
    }

    /// Goes on with what was received while an answer was under way.
    private func continueReading() {
        guard phase == .idle, !isProcessing else { return }
        if !inbound.isEmpty { processInbound() }
        if inbound.count < inboundBytesMax { resumeReading() }
        exchange?.uploadMore()
    }

    // MARK: answering

    private func answer(_ bytes: UnsafeBufferPointer<UInt8>) {
        worker.counters.add(.requests)
        requestsAnswered += 1
        account = Account(worker.log)
        let scratch = unsafe worker.scratch
        let method = unsafe scratch.pointee.requestHead.method
        guard unsafe isPlain(bytes, scratch), unsafe scratch.pointee.isOpen, isAdmitted else {
            return unsafe answerWithCare(bytes)
        }
        persists = mayPersist
        let cache = unsafe method == .head ? scratch.pointee.plainHead : scratch.pointee.plainGet
        let key = unsafe readKey(bytes)
        let record = unsafe worker.shared.lookup(key, scratch.pointee.keyBytes).first
        if let record = record.map({ unsafe unsafeDowncast($0, to: StoredResponse.self) }), record.isPlain,
            case .serve(let age, let ttl) = reuse(of: record.terms, for: cache, now: worker.wallTime),
            record.body.state == .complete
        {
            worker.shared.tier.touch(record)
            return unsafe writeHit(record, age: age, ttl: ttl, isHead: method == .head, request: bytes)
        }
        unsafe begin(bytes, cache, options: ConnectionOptions(), bodyLength: .none, key: key)
    }

    private var mayPersist: Bool {
        let limit = unsafe worker.scratch.pointee.limits.requestsPerConnectionMax
        return !worker.isDraining && (limit == 0 || requestsAnswered < limit)
    }

    /// A GET or HEAD that says nothing but what it wants, on a connection that stays: what nearly all hits are.
    private func isPlain(_ bytes: UnsafeBufferPointer<UInt8>, _ scratch: UnsafeMutablePointer<Worker.Scratch>) -> Bool {
        let method = unsafe scratch.pointee.requestHead.method
        guard method == .get || method == .head, unsafe scratch.pointee.requestHead.minorVersion == 1,
            unsafe scratch.pointee.requestHead.target.form == .absolute
        else { return false }
        let present = unsafe scratch.pointee.requestHead.fields.present.bits
        guard unsafe present & scratch.pointee.careful.always == 0 else { return false }
        guard unsafe present & scratch.pointee.careful.connection != 0 else { return true }
        return unsafe FieldsOfConcern.onlyKeepsAlive(scratch.pointee.requestHead.fields, bytes)
    }

    private func readKey(_ bytes: UnsafeBufferPointer<UInt8>) -> StorageKey {
        let scratch = unsafe worker.scratch
        unsafe scratch.pointee.keyBytes.removeAll(keepingCapacity: true)
        unsafe appendNormalisedURI(scratch.pointee.requestHead.target, of: bytes.span, to: &scratch.pointee.keyBytes)
        return unsafe worker.shared.key(of: scratch.pointee.keyBytes)
    }

    /// Requests with fields that say something about the connection, the framing, or who is asking.
    private func answerWithCare(_ bytes: UnsafeBufferPointer<UInt8>) {
        let head = unsafe worker.scratch.pointee.requestHead
        let options = unsafe ConnectionOptions(head.fields, bytes: bytes.span)
        persists = mayPersist && Framing.persists(minorVersion: head.minorVersion, options)
        var cache = unsafe CacheRequest(method: head.method, fields: head.fields, bytes: bytes.span)
        do throws(FramingError) {
            let bodyLength = unsafe try requestBodyLength(head, bytes: bytes.span)
            switch bodyLength {
            case .none, .length(0), .tunnel: break
            case .length, .chunked, .untilClose: cache.hasBody = true
            }
            unsafe begin(bytes, cache, options: options, bodyLength: bodyLength, key: readKey(bytes))
        } catch {
            refuse(violation: error)
        }
    }

    private func begin(
        _ bytes: UnsafeBufferPointer<UInt8>, _ cache: CacheRequest, options: ConnectionOptions, bodyLength: BodyLength,
        key: StorageKey
    ) {
        let scratch = unsafe worker.scratch
        let owned = unsafe Array(bytes)
        let destination = unsafe worker.destinations.destination(owned[scratch.pointee.requestHead.target.hostRange])
        let request = unsafe OwnedRequest(
            bytes: owned, head: scratch.pointee.requestHead, cache: cache, bodyLength: bodyLength, options: options,
            keyBytes: scratch.pointee.keyBytes, key: key, client: peer, destination: destination)
        phase = .answering
        worker.loop.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientIdle)
        let exchange = Exchange(client: self, request: request)
        exchangeNumber &+= 1
        self.exchange = exchange
        exchange.start()
    }

    // MARK: hits

    /// Head and body of a complete stored response in one system call, and nothing else.
    private func writeHit(
        _ record: StoredResponse, age: Seconds, ttl: Seconds, isHead: Bool, request: UnsafeBufferPointer<UInt8>
    ) {
        var out = unsafe OutputCursor(worker.outBuffer)
        out.append(record.head)
        out.append("Age: ")
        out.append(decimal: age.count)
        out.append("\r\nCache-Status: larder; hit; ttl=")
        out.append(decimal: ttl.count)
        out.append(persists ? "\r\n\r\n" : "\r\nConnection: close\r\n\r\n")
        let headBytes = out.count
        let body = record.body
        let length = isHead ? 0 : body.length
        worker.counters.add(.hits)
        worker.counters.add(.bytesFromCache, length)
        account.status = record.cached.status
        account.outcome = .hit
        account.bodyBytes = length
        let sent: IOResult
        if length <= ClientConnection.copiedBodyMax {
            let vectors = unsafe worker.vectors
            let used = unsafe length == 0 ? 0 : body.vectors(from: 0, limit: length, into: vectors)
            for index in 0..<used {
                unsafe out.append(UnsafeRawBufferPointer(start: vectors[index].iov_base, count: vectors[index].iov_len))
            }
            sent = unsafe IO.send(fd, out.bytes)
        } else {
            let vectors = unsafe worker.vectors
            unsafe vectors[0] = unsafe iovec(iov_base: worker.outBuffer.baseAddress, iov_len: headBytes)
            let used = unsafe body.vectors(
                from: 0, limit: length, into: UnsafeMutableBufferPointer(rebasing: vectors[1...]))
            sent = unsafe IO.writev(fd, vectors.baseAddress!, used + 1)
        }
        unsafe hitSent(sent, headBytes: headBytes, length: length, record, request)
    }

    /// Up to here a body is copied behind its head: one short write costs less than a gathering one.
    private static let copiedBodyMax = 4096

    private func hitSent(
        _ result: IOResult, headBytes: Int, length: Int, _ record: StoredResponse, _ request: UnsafeBufferPointer<UInt8>
    ) {
        let written: Int
        switch result {
        case .bytes(let count): written = count
        case .wouldBlock: written = 0
        case .closed, .failed: return close()
        }
        worker.counters.add(.bytesToClients, written)
        if worker.log.isOn {
            unsafe worker.log.append(account, head: worker.scratch.pointee.requestHead, request, client: peer)
        }
        if written == headBytes + length {
            unsafe worker.loop.timers.schedule(self, afterNanoseconds: worker.scratch.pointee.clientIdleNanoseconds)
            if !persists { linger() }
            return
        }
        // The socket is full: the rest goes when it has room. The line for the log is written already.
        phase = .answering
        account.isLogged = true
        if written < headBytes {
            unsafe pending.append(contentsOf: UnsafeRawBufferPointer(rebasing: worker.outBuffer[written..<headBytes]))
        }
        delivery = Delivery(body: record.body, range: max(0, written - headBytes)..<length, isChunked: false)
        waitForRoom()
    }

    // MARK: output of exchanges

    /// Bytes that the client has not taken yet.
    var unsentBytes: Int { pending.count - pendingOffset }

    /// Adds bytes to what goes out next; `flush` sends.
    func queue(_ bytes: [UInt8]) { pending.append(contentsOf: bytes) }
    func queue(_ bytes: UnsafeRawBufferPointer) { unsafe pending.append(contentsOf: bytes) }
    func queue(_ write: (inout [UInt8]) -> Void) { write(&pending) }

    /// Sends what is queued and these bytes at once; what the socket does not take is kept.
    func send(_ bytes: UnsafeRawBufferPointer) {
        guard unsentBytes > 0 else { return unsafe sendOnly(bytes) }
        guard !writeEvent.isAdded else { return unsafe queue(bytes) }
        let result = unsafe pending.withUnsafeBytes { queued in
            let vectors = unsafe worker.vectors
            let head = unsafe UnsafeRawBufferPointer(rebasing: queued[pendingOffset...])
            unsafe vectors[0] = unsafe iovec(iov_base: .init(mutating: head.baseAddress), iov_len: head.count)
            unsafe vectors[1] = unsafe iovec(iov_base: .init(mutating: bytes.baseAddress), iov_len: bytes.count)
            return unsafe IO.writev(fd, vectors.baseAddress!, 2)
        }
        unsafe sent(result, queued: unsentBytes, bytes)
    }

    private func sendOnly(_ bytes: UnsafeRawBufferPointer) {
        unsafe sent(IO.send(fd, bytes), queued: 0, bytes)
    }

    private func sent(_ result: IOResult, queued: Int, _ bytes: UnsafeRawBufferPointer) {
        var count = 0
        switch result {
        case .bytes(let written): count = written
        case .wouldBlock: break
        case .closed, .failed: return close()
        }
        worker.counters.add(.bytesToClients, count)
        pendingOffset += min(count, queued)
        trimPending()
        let ofBytes = max(0, count - queued)
        if ofBytes < bytes.count { unsafe queue(UnsafeRawBufferPointer(rebasing: bytes[ofBytes...])) }
        if unsentBytes > 0 { waitForRoom() }
    }

    private func trimPending() {
        guard pendingOffset == pending.count else {
            // A peer that always leaves a little must not make us keep all that is out already.
            if pendingOffset > 64 << 10 {
                pending.removeFirst(pendingOffset)
                pendingOffset = 0
            }
            return
        }
        pending.removeAll(keepingCapacity: pending.capacity <= 16 << 10)
        pendingOffset = 0
    }

    private func waitForRoom() {
        guard phase != .closed else { return }
        // One that reads nothing of a body that streams through a window holds up all who read the same.
        let isInTheWay = delivery.map { $0.body.isWindowed && $0.body.readerCount > 1 } ?? false
        worker.loop.timers.schedule(
            self, after: isInTheWay ? .seconds(5) : worker.snapshot.configuration.timeouts.idle)
        guard !writeEvent.isAdded else { return }
        if !writeEvent.isAssigned {
            let context = unsafe Unmanaged.passUnretained(self).toOpaque()
            unsafe writeEvent.assign(
                worker.loop, fd: fd, .write,
                { _, _, context in
                    unsafe Unmanaged<ClientConnection>.fromOpaque(context!).takeUnretainedValue().onWritable()
                }, context)
        }
        writeEvent.add()
    }

    private func onWritable() {
        writeEvent.remove()
        worker.loop.timers.schedule(self, after: worker.snapshot.configuration.timeouts.idle)
        flush()
    }

    /// Sends as much as the socket takes; goes on by itself when it has room or the body grows.
    func flush() {
        guard !writeEvent.isAdded else { return }
        while phase == .answering {
            switch step() {
            case .progressed: continue
            case .blocked: return waitForRoom()
            case .waiting: return
            case .done: return outputDone()
            case .failed: return close()
            }
        }
    }

    private enum Step { case progressed, blocked, waiting, done, failed }

    private func step() -> Step {
        guard let delivery else {
            guard unsentBytes > 0 else { return .done }
            return write(bodyBytes: 0)
        }
        switch delivery.next(framing: &pending) {
        case .bytes(let count):
            return write(bodyBytes: count)
        case .finished:
            if unsentBytes > 0 { return write(bodyBytes: 0) }
            endDelivery()
            return .done
        case .wait:
            if unsentBytes > 0 { return write(bodyBytes: 0) }
            return awaitBody()
        case .broken:
            exchange?.broke()
            return .failed
        }
    }

    private func write(bodyBytes: Int) -> Step {
        let queued = unsentBytes
        let result = unsafe pending.withUnsafeBytes { bytes in
            let vectors = unsafe worker.vectors
            var used = 0
            if queued > 0 {
                let head = unsafe UnsafeRawBufferPointer(rebasing: bytes[pendingOffset...])
                unsafe vectors[0] = unsafe iovec(iov_base: .init(mutating: head.baseAddress), iov_len: head.count)
                used = 1
            }
            if bodyBytes > 0, let delivery {
                used += unsafe delivery.body.vectors(
                    from: delivery.offset, limit: bodyBytes,
                    into: UnsafeMutableBufferPointer(rebasing: vectors[used...]))
            }
            return unsafe IO.writev(fd, vectors.baseAddress!, used)
        }
        switch result {
        case .bytes(0):
            return .failed
        case .bytes(let count):
            worker.counters.add(.bytesToClients, count)
            pendingOffset += min(count, queued)
            trimPending()
            let ofBody = max(0, count - queued)
            if ofBody > 0 {
                account.bodyBytes += ofBody
                if account.outcome.isFromCache { worker.counters.add(.bytesFromCache, ofBody) }
                delivery?.advance(by: ofBody, framing: &pending)
            }
            return .progressed
        case .wouldBlock:
            return .blocked
        case .closed, .failed:
            return .failed
        }
    }

    /// The body is not there yet: its writer, on whatever thread, will say when there is more.
    private func awaitBody() -> Step {
        guard let delivery, delivery.ticket == nil else { return .waiting }
        if exchange?.isToldOfProgress == true { return .waiting }
        let inbox = worker.loop.inbox
        let worker = WorkerReference(worker)
        let id = id
        let ticket = delivery.body.await(
            beyond: delivery.offset, Wake { inbox.post { worker.value.clients[id]?.bodyGrew() } })
        guard let ticket else { return .progressed }
        delivery.ticket = ticket
        return .waiting
    }

    private func bodyGrew() {
        delivery?.ticket = nil
        flush()
    }

    private func endDelivery() {
        delivery?.end(cancelling: true)
        delivery = nil
    }

    /// Everything queued is out. The exchange says whether that was the end.
    private func outputDone() {
        if let exchange, !exchange.outputDrained() { return }
        finishResponse()
    }

    // MARK: the end of a response

    private func finishResponse() {
        guard phase == .answering else { return }
        if let exchange {
            exchange.finished()
            if exchange.leavesRequestUnread { persists = false }
        }
        exchange = nil
        guard persists, !worker.isDraining else { return linger() }
        phase = .idle
        worker.loop.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientIdle)
        if !isProcessing { continueReading() }
    }

    /// The client does not get its whole answer, and must be able to tell: the connection ends without one.
    func abort() {
        exchange?.broke()
        close()
    }

    private func refuse(violation: FramingError) {
        worker.counters.add(.requests)
        worker.counters.count(violation)
        worker.counters.add(.refused)
        account = Account(worker.log)
        account.status = violation.requestStatus
        account.outcome = .refused
        persists = false
        phase = .answering
        ErrorResponse(violation).append(isHead: false, persists: false, date: worker.wallTime, to: &pending)
        if worker.log.isOn { worker.log.append(account, violation: violation, client: peer) }
        flush()
    }

    /// Our side is closed; what the client still sends is read and dropped for a moment, since a reset would destroy
    /// the answer on its way (RFC 9112 §9.6).
    private func linger() {
        guard phase != .closed, phase != .lingering else { return }
        phase = .lingering
        inbound = []
        Sockets.shutdownWrite(fd)
        lingerBytes = 0
        readEvent.add()
        worker.loop.timers.schedule(self, after: .seconds(2))
    }

    /// The exchange has a connection for the body that it waits to send: once this turn's bytes are put by.
    func uploadSoon() { if !isProcessing { exchange?.uploadMore() } }

    private var lingerBytes = 0
    private static let lingerBytesMax = 1 << 20

    /// The socket goes to somebody else; this connection is over.
    func surrender() -> (fd: CInt, early: [UInt8]) {
        let surrendered = (fd, inbound)
        inbound = []
        fd = -1
        phase = .tunnelling
        release()
        return surrendered
    }

    func close() {
        guard phase != .closed else { return }
        let isOpen = fd >= 0
        phase = .closed
        if isOpen {
            readEvent.clear()
            writeEvent.clear()
            Glibc.close(fd)
            fd = -1
        }
        release()
    }

    private func release() {
        readEvent.clear()
        writeEvent.clear()
        worker.loop.timers.cancel(self)
        endDelivery()
        let exchange = self.exchange
        self.exchange = nil
        exchange?.clientLeft()
        worker.forget(id)
    }

    override func timerFired() {
        switch phase {
        case .idle where !inbound.isEmpty:
            worker.counters.add(.timeouts)
            worker.counters.add(.requests)
            worker.counters.add(.refused)
            worker.counters.refusals.add(Int(Refusal.requestTimeout.rawValue), 1)
            account = Account(worker.log)
            phase = .answering
            persists = false
            ErrorResponse(.requestTimeout).append(isHead: false, persists: false, date: worker.wallTime, to: &pending)
            flush()
        case .answering where !writeEvent.isAdded && !(readEvent.isAdded && exchange?.owesBody == true):
            // The origin is taking its time, and has its own limit.
            worker.loop.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientIdle)
        case .answering where !writeEvent.isAdded && exchange?.isAnswered == false && account.status == 0:
            worker.counters.add(.timeouts)
            exchange?.bodyIsLate()
        case .idle, .answering, .lingering:
            if phase == .answering { worker.counters.add(.timeouts) }
            abort()
        case .tunnelling, .closed:
            break
        }
    }
}
