import Access
import Accounts
import Authentication
import CLarder
import Caching
import EventLoop
import Forwarding
import Framing
import Glibc
import Message
import Origins
import Storage
import Transaction

/// The short path of a hit: from a request's head to a complete stored response within one callback.
///
/// Everything here counts instructions: no allocation, no closure, and nothing is read that a plain GET does not need. Whatever is not
/// plain takes the longer path through `answerUncommonRequest` or `begin`.
extension ClientConnection {
    /// Answers one request, or begins an exchange for it.
    ///
    /// - Parameter bytes: the head, in the read buffer or in a copy of `inbound`. `Worker.scratch` has its parsed form, which the next
    ///   parse overwrites.
    func answer(_ bytes: UnsafeBufferPointer<UInt8>) {
        var tunnel: RequestID?
        if let origin = context.fixedOrigin {
            guard unsafe completeTarget(by: origin, bytes) else { return }
            tunnel = context.tunnel
        }
        worker.counters.add(.requests)
        countRequest()
        account = worker.log.opened()
        account.tunnel = tunnel
        let scratch = unsafe worker.scratch
        let method = unsafe scratch.pointee.requestHead.method
        guard unsafe isPlain(bytes, scratch), unsafe scratch.pointee.isOpen, context.isOrdinary, pins == nil else {
            if let shortWay { return unsafe answer(bytes, by: shortWay) }
            return unsafe answerUncommonRequest(bytes)
        }
        closing = reasonToClose
        let cache = unsafe method == .head ? scratch.pointee.plainHead : scratch.pointee.plainGet
        let (key, found) = unsafe newest(for: bytes)
        guard let newest = consume found else {
            return unsafe begin(
                bytes, cache, options: ConnectionOptions(), bodyLength: .none, known: .init(key: key))
        }
        if newest.isPlain, case .serve(let age, let ttl) = reuse(of: newest.terms, for: cache, now: worker.wallTime),
            unsafe serve(newest, age: age, ttl: ttl, method, bytes)
        {
            return
        }
        unsafe begin(
            bytes, cache, options: ConnectionOptions(), bodyLength: .none, known: .init(key: key, response: newest))
    }

    /// Serves a fresh response of the default zone as it is stored. Returns false if it takes the longer path, and writes nothing then.
    ///
    /// - Parameter logIn: who has found the request proven. The answer has a proof of its own then. Nil if nobody had to.
    @inline(__always)
    private func serve(
        _ record: StoredResponse, age: Seconds, ttl: Seconds, _ method: Method, _ bytes: UnsafeBufferPointer<UInt8>,
        provenBy logIn: DigestLogIn? = nil
    ) -> Bool {
        let body = record.body
        guard body.isComplete, !record.isMemoryOnly,
            unsafe !worker.scratch.pointee.followsRedirects || !RedirectStep.concerns(status: record.cached.status)
        else { return false }
        if body.length > ClientConnection.copiedBodyMax, method != .head,
            unsafe serveFromFile(record, worker.zones[0], age: age, ttl: ttl, bytes, logIn)
        {
            return true
        }
        if body.isResident || method == .head {
            if let logIn, unsafe !logIn.use(bytes.span, worker) { return false }
            unsafe worker.scratch.pointee.defaultZone._withUnsafeGuaranteedRef { $0.tier.touch(record) }
            unsafe writeHit(record, age: age, ttl: ttl, isHead: method == .head, request: bytes, logIn)
            return true
        }
        let zone = worker.zones[0]
        guard let body = unsafe bodyFromDisk(record, zone) else { return false }
        // Nothing can go wrong any more: a count is used up by an answer.
        if let logIn, unsafe !logIn.use(bytes.span, worker) { return false }
        zone.tier.touch(record)
        unsafe writeHit(record, body, age: age, ttl: ttl, request: bytes, logIn)
        return true
    }

    /// Serves a response whose body is long enough to be sent from its file, in memory or on the disk. Returns false if it is not, and writes
    /// nothing then.
    @inline(never)
    private func serveFromFile(
        _ record: StoredResponse, _ zone: Zone, age: Seconds, ttl: Seconds, _ request: UnsafeBufferPointer<UInt8>,
        _ logIn: DigestLogIn?
    ) -> Bool {
        let body = record.body
        let length = body.length
        guard length >= Body.fileBytesMin, body.isResident || !body.isLarge && !zone.tier.isWorthMemory(record),
            let range = fileRange(of: body, from: 0, limit: min(length, ClientConnection.bytesAtOnceMax))
        else { return false }
        if let logIn, unsafe !logIn.use(request.span, worker) { return false }
        zone.tier.touch(record)
        if !body.isResident { worker.counters.add(.hitsFromDisk) }
        let out = beginHit(record, age: age, ttl: ttl, length: length, logIn)
        // If hundreds of clients ask at once, most of their answers begin in later turns (`sendRest`).
        let sent = unsafe worker.readers.hasRoomForHit ? transport?.send(out.bytes, range) ?? .closed : .wouldBlock
        if case .bytes(let count) = sent { worker.readers.noteSent(count) }
        unsafe hitSent(sent, headBytes: out.count, length: length, record, request)
        return true
    }

    // MARK: behind rules

    /// Answers one request where users have to prove who they are, or rules look at requests, if the last hit on this connection says
    /// that this one is allowed as well.
    private func answer(_ bytes: UnsafeBufferPointer<UInt8>, by kept: KeptShortWay) {
        let scratch = unsafe worker.scratch
        let method = unsafe scratch.pointee.requestHead.method
        let (way, logIn) = (kept.way, kept.logIn)
        guard unsafe isPlain(bytes, scratch, but: scratch.pointee.fieldsOfConcern.credentials), context.isOrdinary,
            pins == nil,
            unsafe way.concerns(
                method, scratch.pointee.requestHead.target, scratch.pointee.requestHead.fields, bytes.span,
                settings: scratch.pointee.settingsNumber, now: worker.uptime,
                isProven: logIn?.isProven(scratch.pointee.requestHead, bytes.span, now: worker.uptime) ?? false),
            let handling = unsafe way.handling(of: scratch.pointee.requestHead.target, bytes.span)
        else { return unsafe answerUncommonRequest(bytes) }
        closing = reasonToClose
        let cache = unsafe method == .head ? scratch.pointee.plainHead : scratch.pointee.plainGet
        let (key, newest) = unsafe newest(for: bytes)
        if let record = newest, record.isPlainInForm,
            case .serve(_, let ttl) = reuse(
                of: record.cached.terms(under: handling), for: cache, now: worker.wallTime)
        {
            let limits = kept.limits
            let length = method == .head ? 0 : record.body.length
            guard
                limits?.countBrief(
                    bytes: length, now: worker.loop.now.nanoseconds, wall: worker.wallTime.secondsSinceEpoch) ?? true
            else {
                return unsafe answerUncommonRequest(bytes)
            }
            if unsafe serve(
                record, age: record.terms.currentAge(worker.wallTime), ttl: ttl, method, bytes, provenBy: logIn)
            {
                limits?.payBrief(
                    bytes: length, now: worker.loop.now.nanoseconds, wall: worker.wallTime.secondsSinceEpoch)
                // The rest is sent when the socket has room; until then the request is under way.
                if let limits, phase == .answering { self.limits = limits.enterAnyway() }
                return worker.counters.add(.hitsByEarlierDecision)
            }
            limits?.uncountBrief()
        }
        unsafe begin(
            bytes, cache, options: ConnectionOptions(), bodyLength: .none, known: .init(key: key, response: newest))
    }

    /// Keeps what was decided about a request that is being served from memory, for those that follow it.
    func keepShortWay(after request: OwnedRequest, by snapshot: Snapshot) {
        guard snapshot === worker.snapshot, snapshot.allowsShortWays, worker.learner == nil, context.isAdmitted,
            pins == nil
        else { return }
        let head = request.head
        let concerns = unsafe worker.scratch.pointee.fieldsOfConcern
        guard head.method == .get || head.method == .head,
            head.fields.present.bits & concerns.always & ~concerns.credentials == 0
        else { return }
        let settings = unsafe worker.scratch.pointee.settingsNumber
        let bytes = request.bytes
        if let shortWay,
            shortWay.way.concerns(
                head.method, head.target, head.fields, bytes.span, settings: settings, now: worker.uptime)
        {
            return
        }
        var proof: ProvenCredentials?
        var logIn: DigestLogIn?
        if shortWay?.logIn != nil { shortWay = nil }
        if context.proof == nil, snapshot.requiresIdentity || request.identity != nil {
            guard let identity = request.identity,
                worker.credentials.wait(of: context.peer, as: identity.name, now: worker.uptime) == nil
            else { return }
            if identity.scheme == .digest {
                logIn = request.fields.first(.proxyAuthorization).flatMap {
                    DigestLogIn($0, of: identity, snapshot, now: worker.uptime)
                }
                guard logIn != nil else { return }
            } else if let value = request.fields.first(.proxyAuthorization) {
                proof = ProvenCredentials(value, of: identity, worker.shared.credentialsHash)
                guard proof != nil else { return }
            } else if identity.scope == .request {
                return
            }
        } else if head.fields.present.contains(.proxyAuthorization) {
            return
        }
        let way = ShortWay(
            for: request.access, head.target, bytes.span, proof: proof, needsProof: logIn != nil, settings: settings,
            access: snapshot.access, rules: snapshot.cacheRules, limits: snapshot.limitPlan)
        shortWay = KeptShortWay(way, worker.limits(ofOthersLike: request, snapshot), logIn)
    }

    /// Completes the target of a request in an opened tunnel. Returns false if the request names another origin, and refuses it.
    private func completeTarget(by origin: FixedOrigin, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        switch unsafe origin.complete(worker.scratch.pointee.requestHead.target, bytes.span) {
        case .complete(let target):
            unsafe worker.scratch.pointee.requestHead.target = target
            return true
        case .misdirected(let target):
            unsafe worker.scratch.pointee.requestHead.target = target
            unsafe refuseMisdirected(bytes, in: origin)
            return false
        }
    }

    /// Why the connection closes after the request that begins now; nil if it may stay open.
    var reasonToClose: CloseReason? {
        if worker.isDraining { return .draining }
        let limit = unsafe worker.scratch.pointee.limits.requestsPerConnectionMax
        return limit == 0 || Int(requestsAnswered) < limit ? nil : .requestLimitReached
    }

    /// Whether the request is a GET or HEAD of HTTP/1.1 in absolute-form without any field that needs care, on a connection that persists.
    /// Nearly all hits are.
    ///
    /// - Parameter known: fields that need no care here.
    @inline(__always)
    func isPlain(
        _ bytes: UnsafeBufferPointer<UInt8>, _ scratch: UnsafeMutablePointer<Worker.Scratch>, but known: UInt64 = 0
    ) -> Bool {
        let method = unsafe scratch.pointee.requestHead.method
        guard method == .get || method == .head, unsafe scratch.pointee.requestHead.minorVersion == 1,
            case .absolute = unsafe scratch.pointee.requestHead.target.form
        else { return false }
        let present = unsafe scratch.pointee.requestHead.fields.present.bits
        guard unsafe present & scratch.pointee.fieldsOfConcern.always & ~known == 0 else { return false }
        guard unsafe present & scratch.pointee.fieldsOfConcern.connection != 0 else { return true }
        return unsafe FieldsOfConcern.onlyKeepsAlive(scratch.pointee.requestHead.fields, bytes)
    }

    /// Looks in the memory of the default zone for the newest response that is stored under the URI of the request.
    @inline(__always)
    private func newest(for bytes: UnsafeBufferPointer<UInt8>) -> (StorageKey, StoredResponse?) {
        let scratch = unsafe worker.scratch
        if let range = unsafe scratch.pointee.requestHead.target.normalisedRange {
            return unsafe newest(under: bytes.span.extracting(range))
        }
        unsafe writeURI(of: bytes)
        return unsafe newest(under: scratch.pointee.keyBytes.span)
    }

    @inline(__always)
    private func newest(under uri: borrowing Span<UInt8>) -> (StorageKey, StoredResponse?) {
        let scratch = unsafe worker.scratch
        let key = unsafe scratch.pointee.keyHasher.key(of: uri)
        return unsafe (key, scratch.pointee.defaultZone._withUnsafeGuaranteedRef { $0.newest(key, uri) })
    }

    /// The normalised URI of the request, in an array of its own.
    private func ownedURI(of bytes: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        let scratch = unsafe worker.scratch
        if let range = unsafe scratch.pointee.requestHead.target.normalisedRange {
            return unsafe Array(UnsafeBufferPointer(rebasing: bytes[range]))
        }
        unsafe writeURI(of: bytes)
        return unsafe scratch.pointee.keyBytes
    }

    /// Writes the normalised URI of the request into `scratch.keyBytes`.
    private func writeURI(of bytes: UnsafeBufferPointer<UInt8>) {
        let scratch = unsafe worker.scratch
        // An array that a request still has is replaced when it is cleared, each time by one with a little more room.
        if unsafe scratch.pointee.keyBytes.capacity > Self.keyRoomMax { unsafe scratch.pointee.keyBytes = [] }
        unsafe scratch.pointee.keyBytes.removeAll(keepingCapacity: true)
        unsafe appendNormalisedURI(scratch.pointee.requestHead.target, of: bytes.span, to: &scratch.pointee.keyBytes)
    }

    /// More room than nearly every key needs.
    private static let keyRoomMax = 1024

    /// Answers a request that is not plain: its fields concern the connection, the framing, the cache or the user.
    func answerUncommonRequest(_ bytes: UnsafeBufferPointer<UInt8>) {
        let head = unsafe worker.scratch.pointee.requestHead
        let options = unsafe ConnectionOptions(head.fields, bytes: bytes.span)
        closing = reasonToClose ?? (Framing.persists(minorVersion: head.minorVersion, options) ? nil : .closeRequested)
        var cache = unsafe CacheRequest(method: head.method, fields: head.fields, bytes: bytes.span)
        do throws(FramingError) {
            let bodyLength = unsafe try requestBodyLength(head, bytes: bytes.span)
            switch bodyLength {
            case .none, .length(0), .tunnel: break
            case .length, .chunked, .untilClose: cache.hasBody = true
            }
            unsafe begin(bytes, cache, options: options, bodyLength: bodyLength)
        } catch {
            refuse(violation: error)
        }
    }

    /// Begins an exchange for the request. It may have answered, or even closed the connection, when this returns.
    ///
    /// - Parameter known: what memory has under the URI of the request, if the caller has just looked.
    func begin(
        _ bytes: UnsafeBufferPointer<UInt8>, _ cache: CacheRequest, options: ConnectionOptions, bodyLength: BodyLength,
        known: consuming Exchange.KnownNewest? = nil
    ) {
        let scratch = unsafe worker.scratch
        let uri = unsafe ownedURI(of: bytes)
        let key = unsafe known?.key ?? scratch.pointee.keyHasher.key(of: uri.span)
        let snapshot = worker.snapshot
        account.begunAt = worker.log.now
        let owned = unsafe Array(bytes)
        precondition(phase == .idle && exchange == nil && delivery == nil, "a connection answers one request at a time")
        let destination = unsafe worker.destinations.destination(
            bytes.span.extracting(scratch.pointee.requestHead.target.hostRange))
        let standing = context.proof?.standing(on: worker)
        var identity: Identity?
        if case .holds(let proven)? = standing { identity = proven }
        let request = unsafe OwnedRequest(
            bytes: owned, head: scratch.pointee.requestHead, options: options, bodyLength: bodyLength, cache: cache,
            keyBytes: uri, key: key, client: context.peer,
            identity: identity
                ?? logIn?.identity(of: scratch.pointee.requestHead.fields, bytes.span, on: worker),
            listener: context.listener, destination: destination, zone: worker.zones[0],
            handling: snapshot.defaultHandling, id: account.id, tunnel: account.tunnel)
        if let standing { request.take(context.proof, standing) }
        request.receivedTarget = receivedTargetOfRequest
        receivedTarget = nil
        request.readsDetails = snapshot.access.looksAtDetails
        if let serverName = context.serverName { request.serverName = serverName }
        if context.listener?.isForPeers == true { request.readPeer(worker.shared.fleet?.peers) }
        if !snapshot.cacheRulesAreTrivial {
            request.applyRules(by: snapshot, zones: worker.zones, worker.shared, now: worker.moment)
        } else if snapshot.origins.changesFields, destination != nil {
            request.noteFieldChanges(by: snapshot, now: worker.wallTime)
        }
        if pins != nil || request.head.fields.present.contains(.authorization) { pin(request) }
        phase = .answering
        var body: InboundBody?
        if request.hasBody {
            // For its content. A client that has nothing to send waits for the origin, and `timerFired` lets it.
            unsafe worker.timers.schedule(self, afterNanoseconds: scratch.pointee.clientIdleNanoseconds)
            body = InboundBody(bodyLength, limits: snapshot.limits)
        }
        exchangeNumber &+= 1
        let exchange = Exchange(
            stream: ClientStream(self, number: exchangeNumber, body: body), request: request,
            known: known)
        self.exchange = exchange
        exchange.start()
        // If it waits for something before it looks into the store, a purge may come in between.
        exchange.stored.known = nil
    }

    /// Gives the request the pin of its origin. A request that authenticates its connection (RFC 4559 §6) begins one.
    private func pin(_ request: OwnedRequest) {
        guard request.destination != nil, request.method != .connect else { return }
        let origin = request.origin
        if let identity = pins?.identity(at: origin) { return request.pin(to: identity) }
        guard request.beginsPin else { return }
        let identity = worker.origins.beginPin(at: origin)
        var pins = self.pins ?? ConnectionPins()
        let dropped = pins.pin(origin, to: identity)
        self.pins = pins
        request.pin(to: identity)
        if let dropped { worker.origins.endPin(dropped, .displaced) }
    }

    /// Reads a body from the disk into the worker's disk buffer. Returns nil if that would block, or if the body is too long, damaged, or
    /// worth the memory; an exchange deals with these cases.
    private func bodyFromDisk(_ record: StoredResponse, _ zone: Zone) -> UnsafeRawBufferPointer? {
        let body = record.body
        guard !body.isLarge, body.length <= Worker.diskBufferBytes, !zone.tier.isWorthMemory(record) else {
            return nil
        }
        guard worker.readFromDisk(body, 0..<body.length) == .done else { return nil }
        return unsafe worker.heldFromDisk(body, from: 0)
    }

    /// Writes a hit whose body lies in the worker's disk buffer.
    private func writeHit(
        _ record: StoredResponse, _ body: UnsafeRawBufferPointer, age: Seconds, ttl: Seconds,
        request: UnsafeBufferPointer<UInt8>, _ logIn: DigestLogIn?
    ) {
        worker.counters.add(.hitsFromDisk)
        let headBytes = beginHit(record, age: age, ttl: ttl, length: body.count, logIn).count
        let vectors = unsafe worker.vectors
        unsafe vectors[0] = unsafe iovec(iov_base: worker.outBuffer.baseAddress, iov_len: headBytes)
        unsafe vectors[1] = unsafe iovec(iov_base: .init(mutating: body.baseAddress), iov_len: body.count)
        let sent = unsafe transport?.writev(vectors.baseAddress!, 2) ?? .closed
        unsafe hitSent(sent, headBytes: headBytes, length: body.count, record, request)
    }

    /// Writes the head into the worker's output buffer.
    private func beginHit(
        _ record: StoredResponse, age: Seconds, ttl: Seconds, length: Int, _ logIn: DigestLogIn?
    ) -> OutputCursor {
        var out = unsafe OutputCursor(worker.outBuffer)
        out.append(record.head)
        out.append(decimal: age.count)
        out.append("\r\nCache-Status: larder; hit; ttl=")
        out.append(decimal: ttl.count)
        if let logIn {
            out.append("\r\nProxy-Authentication-Info: ")
            out.append(logIn.information)
        }
        if persists { out.append("\r\n\r\n") } else { out.append("\r\nConnection: close\r\n\r\n") }
        worker.counters.add(.hits)
        account.status = record.cached.status
        account.outcome = .hit
        account.bodyBytes = length
        return out
    }

    /// Writes head and body of a complete stored response with one system call.
    @inline(__always)
    private func writeHit(
        _ record: StoredResponse, age: Seconds, ttl: Seconds, isHead: Bool, request: UnsafeBufferPointer<UInt8>,
        _ logIn: DigestLogIn?
    ) {
        let body = record.body
        let length = isHead ? 0 : body.length
        var out = beginHit(record, age: age, ttl: ttl, length: length, logIn)
        let headBytes = out.count
        let sent: IOResult
        if length <= ClientConnection.copiedBodyMax {
            if let bytes = unsafe body.firstBytes(length) {
                unsafe out.append(bytes)
            } else {
                let vectors = unsafe worker.vectors
                let used = unsafe body.vectors(from: 0, limit: length, into: vectors)
                for index in 0..<used {
                    unsafe out.append(
                        UnsafeRawBufferPointer(start: vectors[index].iov_base, count: vectors[index].iov_len))
                }
            }
            sent = unsafe transport?.write(out.bytes) ?? .closed
        } else {
            let vectors = unsafe worker.vectors
            unsafe vectors[0] = unsafe iovec(iov_base: worker.outBuffer.baseAddress, iov_len: headBytes)
            let used = unsafe body.vectors(
                from: 0, limit: length, into: UnsafeMutableBufferPointer(rebasing: vectors[1...]))
            sent = unsafe transport?.writev(vectors.baseAddress!, used + 1) ?? .closed
        }
        unsafe hitSent(sent, headBytes: headBytes, length: length, record, request)
    }

    /// Bodies of up to so many bytes are copied behind their head: one short `write` costs less than a `writev`.
    static let copiedBodyMax = 4096

    /// Ends a hit, or makes a delivery of the bytes that the socket did not accept.
    func hitSent(
        _ result: IOResult, headBytes: Int, length: Int, _ record: StoredResponse, _ request: UnsafeBufferPointer<UInt8>
    ) {
        let written: Int
        switch result {
        case .bytes(let count): written = count
        case .wouldBlock: written = 0
        case .closed, .failed: return close(.clientLeft)
        }
        worker.counters.add(.bytesToClients, written)
        // Bytes that the socket did not accept are counted when they are sent.
        worker.counters.add(.bytesFromCache, max(0, written - headBytes))
        if worker.log.isOn { unsafe logHit(request) }
        if written == headBytes + length, unsafe transport?.hasUnsentBytes != true {
            let scratch = unsafe worker.scratch
            unsafe scratch.pointee.timers._withUnsafeGuaranteedRef {
                unsafe $0.schedule(self, afterNanoseconds: scratch.pointee.clientIdleNanoseconds)
            }
            if let closing { linger(closing) }
            return
        }
        sendRest(written, headBytes: headBytes, length: length, record)
    }

    /// Writes the log line. Not inlined, because its large frame would cost hits that are not logged.
    @inline(never)
    private func logHit(_ request: UnsafeBufferPointer<UInt8>) {
        unsafe worker.log.append(
            account, head: LoggedHead(worker.scratch.pointee.requestHead), request, client: context.peer,
            listener: context.listener?.nameInLog, user: worker.scratch.pointee.isOpen ? nil : shortWay?.way.user,
            received: receivedTargetOfRequest)
    }

    /// Goes on with a hit of which the socket has accepted `written` bytes. The log line has been written already.
    @inline(never)
    private func sendRest(_ written: Int, headBytes: Int, length: Int, _ record: StoredResponse) {
        precondition(written <= headBytes + length, "the socket accepted more bytes than it was offered")
        // The socket is full, the pages of the body are apart, or one call does not send so much: the rest is sent when there is room.
        phase = .answering
        account.isLogged = true
        // TLS has taken all of it, but not sent it.
        if written == headBytes + length { return waitForRoom() }
        if written < headBytes {
            unsafe output.append(UnsafeRawBufferPointer(rebasing: worker.outBuffer[written..<headBytes]))
        }
        let rest = max(0, written - headBytes)..<length
        let delivery = Delivery(record, range: rest, isChunked: false)
        // By the time the client has room, the segment of the body may have been reclaimed: keep its file open, or load it into memory. If that
        // would block, the disk buffer may have it, which the next read overwrites.
        if !record.body.isResident, !holdFile(of: delivery), record.body.load(waits: false) != .done,
            let held = unsafe worker.heldFromDisk(record.body, from: rest.lowerBound), held.count >= rest.count
        {
            unsafe output.append(UnsafeRawBufferPointer(rebasing: held[..<rest.count]))
            return waitForRoom()
        }
        self.delivery = delivery
        if worker.readers.isTurnOver { flush() } else { waitForRoom() }
    }
}
