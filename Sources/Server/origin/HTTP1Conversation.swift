package import EventLoop
import Forwarding
package import Framing
package import Message
package import Transport

/// The client's side of an HTTP/1 connection: one request and its response at a time (RFC 9112).
///
/// ```
/// silent ─ask─▶ reading ─▶ … ─▶ silent (idle, or for the next request)
///                 │  └─▶ skipping ─▶ over
///                 └◀─release─ held
/// ```
///
/// It owns the transport, and frames and unframes messages. What a head means, where content goes, and when too much time has passed is for
/// its owner (`ConversationOwner`).
@safe package final class HTTP1Conversation {
    private enum State {
        /// Nothing has been asked.
        case silent
        case reading
        /// A final head waits for `release`.
        case held
        /// The content is read over.
        case skipping(bytesLeft: Int)
        /// What follows of the response is of no use.
        case over
    }

    /// The user of the connection. Nil while it is idle. Reading and setting it calls nothing: the unchecked access is exclusive.
    package private(set) var owner: (any ConversationOwner)? {
        get { unsafe uncheckedOwner }
        set { unsafe uncheckedOwner = newValue }
    }
    @exclusivity(unchecked) private var uncheckedOwner: (any ConversationOwner)?
    /// Whether it has an owner.
    package var isInUse: Bool { unsafe uncheckedOwner != nil }
    /// Set by `start`, once. The keeper owns the conversation.
    private var keeper: any ConversationKeeper { unsafe uncheckedKeeper }
    @exclusivity(unchecked) private unowned(unsafe) var uncheckedKeeper: (any ConversationKeeper)!
    private let memory: ConversationMemory
    /// Nil once it is closed or surrendered. The access is unchecked, but exclusive: no method of a transport calls back.
    @exclusivity(unchecked) private var transport: Transport?
    /// No method of an `IOEvent`, an `OutputQueue` or of the values that read and frame messages calls back either.
    @exclusivity(unchecked) private var readEvent = IOEvent()
    @exclusivity(unchecked) private var writeEvent = IOEvent()
    @exclusivity(unchecked) private var pending = OutputQueue()
    /// Whether the owner wants to hear of bytes that arrive. Always true while the connection is idle.
    private var isReading = false

    private var state = State.silent
    /// Counts requests and owners: what has begun before a number changed is not continued.
    private var number = 0
    /// The bytes of an incomplete head, or those of one that is held and what follows it.
    private var kept: [UInt8] {
        get { unsafe uncheckedKept }
        _modify { yield unsafe &uncheckedKept }
    }
    @exclusivity(unchecked) private var uncheckedKept: [UInt8] = []
    @exclusivity(unchecked) private var reader = ResponseReader(to: .get)
    @exclusivity(unchecked) private var outgoing = OutgoingBody(.none)
    /// The connection can carry another request once the response is complete, if it is idle for no longer than that.
    private var keepAlive: Duration? {
        get { unsafe uncheckedKeepAlive }
        set { unsafe uncheckedKeepAlive = newValue }
    }
    @exclusivity(unchecked) private var uncheckedKeepAlive: Duration?
    private var isRequestSent = false
    /// The connection accepts no more bytes.
    private var isSendingOver = false
    /// What follows the head that the owner is being told of, from the first byte that nobody has taken.
    private var arrived = unsafe UnsafeRawBufferPointer(start: nil, count: 0)

    package init(_ transport: consuming Transport, _ memory: ConversationMemory) {
        unsafe self.transport = consume transport
        self.memory = memory
    }

    /// Begins to listen to the socket.
    package func start(on loop: EventLoop, keeper: any ConversationKeeper) {
        unsafe uncheckedKeeper = keeper
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe transport!.assign(
            &readEvent, on: loop, .read, { _, _, context in unsafe conversation(context).socketIsReady(.read) }, context
        )
        unsafe transport!.assign(
            &writeEvent, on: loop, .write, { _, _, context in unsafe conversation(context).socketIsReady(.write) },
            context)
        isReading = true
        updateEvents()
    }

    // MARK: owners

    package var isOpen: Bool { unsafe transport != nil }

    package func begin(_ owner: any ConversationOwner) {
        precondition(self.owner == nil, "a connection has one owner at a time")
        precondition(
            isOpen && unsentBytes == 0, "a request needs an open connection, on which nothing is left of another one")
        self.owner = owner
        number += 1
        state = .silent
        keepAlive = nil
        isRequestSent = true
    }

    /// Another one hears what comes from here on.
    func pass(to owner: any ConversationOwner) {
        precondition(self.owner != nil, "what has no owner cannot be passed on")
        self.owner = owner
    }

    /// Ends the conversation. Returns for how long the connection may be idle; nil if it cannot be used again.
    package func end() -> Duration? {
        precondition(owner != nil, "a conversation ends once")
        owner = nil
        number += 1
        guard unsafe reader.phase == .complete, isRequestSent, !isSendingOver, unsentBytes == 0, let time = keepAlive
        else {
            return nil
        }
        state = .silent
        if !isReading { resume() }
        return time
    }

    // MARK: the request

    /// Bytes of the request that the socket has not accepted yet.
    package var unsentBytes: Int { unsafe pending.count }

    /// Begins a request. The response to the one before has been taken, or nobody waits for it.
    ///
    /// - Parameters:
    ///   - framing: how the end of its content is told.
    ///   - hasContent: content follows, of whatever length, and `endRequest` behind it. Otherwise the head is all of the request.
    package func ask(
        _ head: UnsafeRawBufferPointer, framing: BodyLength, hasContent: Bool, method: Method
    ) -> WriteOutcome {
        precondition(owner != nil, "a request has somebody who waits for the response")
        number += 1
        state = .reading
        // What an earlier request has left belongs to another message.
        if !kept.isEmpty { kept = [] }
        unsafe reader = ResponseReader(to: method)
        keepAlive = nil
        unsafe outgoing = OutgoingBody(framing)
        isRequestSent = !hasContent
        return unsafe send(head)
    }

    /// Sends a piece of the content. What the socket does not accept is queued; `drained` is called when the queue is empty.
    package func send(content: UnsafeRawBufferPointer) {
        precondition(!isRequestSent, "bytes behind a request would be read as the next one")
        _ = unsafe outgoing.append(content) { unsafe send($0) }
    }

    /// Ends the request. From here on the connection may be reused after the response; before, a response that is complete leaves it in the middle of a
    /// request (RFC 9112 §9.3).
    ///
    /// - Parameter names: of trailers that are left out, in lower case.
    package func endRequest(trailers: Fields?, without names: @autoclosure () -> Set<String>) {
        precondition(!isRequestSent, "a request ends once")
        isRequestSent = true
        let last = unsafe outgoing.end(trailers: trailers, without: trailers == nil ? [] : names())
        if !last.isEmpty { _ = unsafe last.withUnsafeBytes { unsafe send($0) } }
    }

    // MARK: the response

    /// Whether the connection can carry another request once the response is complete, as far as that is known.
    package var persists: Bool { keepAlive != nil }
    /// The trailer section of a response that is complete. Nil if it has none.
    package var trailers: Fields? { unsafe reader.trailers }
    /// A part of a head has come.
    var headBegan: Bool { if case .reading = state { !kept.isEmpty } else { false } }

    /// Allows that the connection is used again behind the response that comes.
    ///
    /// - Parameter time: for how long it may be idle. Nil: not at all.
    package func keep(for time: Duration?) { keepAlive = time }

    /// The owner has used the content that came together with the head (`ArrivedHead.content`).
    package func takeContent() {
        guard let missing = unsafe reader.missing, missing > 0, unsafe missing <= arrived.count else {
            preconditionFailure("there is content to take")
        }
        _ = unsafe reader.passed(Int(missing))
        unsafe arrived = unsafe UnsafeRawBufferPointer(rebasing: arrived[Int(missing)...])
    }

    /// Reads over the content behind the head that the owner is being told of, as far as it has come. The connection can be used again if that is
    /// all of it.
    func skipArrivedContent() {
        unsafe skip(arrived)
        unsafe arrived = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    }

    /// Reads on after a head was held.
    func release() {
        guard case .held = state else { preconditionFailure("no head is held") }
        state = .reading
        isReading = true
        updateEvents()
        keeper.turn {
            let number = number
            takeKeptHead()
            guard number == self.number else { return }
            if mustBeDrained { return read() }
            owner?.endOfRead()
        }
    }

    // MARK: pauses

    package func pause() {
        precondition(owner != nil, "an idle connection must see its peer close it")
        isReading = false
        updateEvents()
    }

    package func resume() {
        isReading = true
        updateEvents()
        if owner != nil, mustBeDrained { keeper.turn { read() } }
    }

    // MARK: what is known of the connection

    /// Whether bytes have been decrypted that no event will announce.
    private var mustBeDrained: Bool { unsafe transport?.mustBeDrained ?? false }
    var isAskedForCertificate: Bool { unsafe transport?.isAskedForCertificate ?? false }
    var isCertificateRefused: Bool { unsafe transport?.isCertificateRefused ?? false }
    /// See `Transport.endPointHash`.
    var endPointHash: [UInt8]? { unsafe transport?.endPointHash ?? nil }

    /// Whether the peer has closed the connection or sent bytes behind its response, as far as TLS has read already. Its own messages,
    /// such as session tickets, are consumed and do not count.
    var hasBytesBehindResponse: Bool {
        guard mustBeDrained else { return false }
        var byte: UInt8 = 0
        return unsafe withUnsafeMutableBytes(of: &byte) { unsafe read(into: $0) } != .wouldBlock
    }

    /// Whether there is nothing to read but messages of TLS, such as session tickets. Reading consumes them.
    package func isQuiet() -> Bool { unsafe read(into: memory.input) == .wouldBlock }

    // MARK: events

    /// With TLS, reading may wait for the write event and writing for the read event. Sending may end the conversation, so the transport is asked
    /// again before reading.
    private func socketIsReady(_ event: Readiness) {
        if unsentBytes > 0, unsafe transport?.awaits(event, toRead: false, toWrite: true) == true { sendPending() }
        guard isReading, unsafe transport?.awaits(event, toRead: true, toWrite: false) == true else { return }
        owner == nil ? keeper.readableWhileIdle() : keeper.turn { read() }
    }

    private func updateEvents() {
        guard unsafe transport != nil else { return }
        unsafe transport!.wait(&readEvent, &writeEvent, toRead: isReading, toWrite: unsentBytes > 0)
    }

    // MARK: reading

    /// In one turn the owner is told of the end of a read after so many reads at the latest, so that its own client does not wait for the end of
    /// the content of a fast origin.
    private static let readsMax = 16

    /// Reads what there is. TLS may have received more than one record: what they bring goes on together.
    private func read() {
        var unreported = 0
        var number = number
        while isReading, let owner, readOnce(owner) {
            if number == self.number, isReadingContent {
                unreported += 1
            } else {
                // It has ended, or another request has begun.
                (unreported, number) = (0, self.number)
            }
            guard mustBeDrained else { break }
            guard unreported >= HTTP1Conversation.readsMax else { continue }
            unreported = 0
            owner.endOfRead()
        }
        if unreported > 0, number == self.number { owner?.endOfRead() }
    }

    private var isReadingContent: Bool {
        if case .reading = state { unsafe reader.phase == .content } else { false }
    }

    /// Returns whether bytes have come.
    private func readOnce(_ owner: any ConversationOwner) -> Bool {
        let limit = isReadingContent ? unsafe reader.readableDirectly : 0
        if limit > 0 {
            let room = unsafe owner.room(forContent: limit)
            if unsafe !room.isEmpty { return unsafe readContent(into: room, owner) }
        }
        guard let count = unsafe readPiece(memory.input, owner) else { return false }
        unsafe take(UnsafeRawBufferPointer(rebasing: memory.input[..<count]), owner)
        return true
    }

    /// Reads content to where it belongs, which saves a copy.
    private func readContent(into room: UnsafeMutableRawBufferPointer, _ owner: any ConversationOwner) -> Bool {
        guard let count = unsafe readPiece(room, owner) else { return false }
        let isLast = unsafe reader.passed(count)
        let number = number
        owner.filled(count)
        guard isLast, number == self.number else { return true }
        // The room ended with the message. Any byte behind it would be read as the answer to the next request.
        if keepAlive != nil, unsafe read(into: memory.input) != .wouldBlock { keepAlive = nil }
        state = .over
        owner.ended(byClosing: false)
        return true
    }

    /// Returns the number of bytes read. Returns nil if there were none; the end of the connection has been reported by then.
    private func readPiece(_ room: UnsafeMutableRawBufferPointer, _ owner: any ConversationOwner) -> Int? {
        let allowance = owner.allowance(for: room.count)
        guard allowance > 0 else {
            pause()
            return nil
        }
        switch unsafe read(into: UnsafeMutableRawBufferPointer(rebasing: room.prefix(allowance))) {
        case .bytes(let count):
            precondition(count <= room.count, "more bytes were read than there is room for")
            keeper.hasRead(count)
            owner.hasRead(count)
            return count
        case .wouldBlock: break
        case .closed: connectionEnded(isOrderly: true, owner)
        case .failed: connectionEnded(isOrderly: false, owner)
        }
        return nil
    }

    private func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        guard let result = unsafe transport?.read(into: buffer) else { return .closed }
        if case .wouldBlock = result { updateEvents() }
        return result
    }

    private func take(_ bytes: UnsafeRawBufferPointer, _ owner: any ConversationOwner) {
        switch state {
        case .reading:
            guard kept.isEmpty else {
                unsafe kept.append(contentsOf: bytes)
                return takeKeptHead()
            }
            let number = number
            unsafe advance(bytes, owner)
            if number == self.number, headBegan { owner.headBegan() }
        case .skipping: unsafe skipOn(bytes, owner)
        case .silent, .over: owner.receivedUnasked()
        case .held: preconditionFailure("nothing is read while a head is held")
        }
    }

    private func takeKeptHead() {
        guard let owner else { return }
        // Taken out while it is parsed: what is incomplete is kept anew.
        let all = kept
        kept = []
        unsafe all.withUnsafeBytes { unsafe advance($0, owner) }
    }

    private func connectionEnded(isOrderly: Bool, _ owner: any ConversationOwner) {
        keepAlive = nil
        switch state {
        case .reading where unsafe reader.phase == .head: owner.closedBeforeHead(headBegan: headBegan)
        case .reading:
            // RFC 9112 §8: content with a length or in chunks that ends with its connection is incomplete.
            guard isOrderly, unsafe reader.closed() else { return owner.brokeOff() }
            owner.ended(byClosing: true)
        case .skipping:
            state = .over
            owner.skipped()
        case .silent, .over: owner.closedBeforeHead(headBegan: false)
        case .held: preconditionFailure("nothing is read while a head is held")
        }
    }

    // MARK: messages

    /// Reads heads and content where they are. Nothing that runs meanwhile reads from a socket of this thread, until the final head and what follows it
    /// have been used or copied.
    private func advance(_ bytes: UnsafeRawBufferPointer, _ first: any ConversationOwner) {
        let span = unsafe bytes.bindMemory(to: UInt8.self)
        var owner = first
        var offset = 0
        let number = number
        // Each step may end the conversation: a client fails, or the origin sends more than it announced.
        while number == self.number, case .reading = state {
            let start = offset
            do throws(FramingError) {
                switch unsafe try next(in: span.span, from: &offset) {
                case .more:
                    if unsafe reader.phase == .head { unsafe kept.append(contentsOf: bytes[offset...]) }
                    return
                case .interim:
                    unsafe owner.received(interim: head(in: bytes, start..<offset, .none))
                    if offset == bytes.count { return }
                case .head(let length):
                    offset = unsafe takeFinal(head(in: bytes, start..<offset, length), owner, in: bytes)
                    // The owner may have passed it on.
                    guard let next = self.owner else { return }
                    owner = next
                case .data(let range):
                    precondition(
                        range.lowerBound >= 0 && range.upperBound <= offset && offset <= bytes.count,
                        "content lies within the received bytes")
                    unsafe owner.received(
                        content: UnsafeRawBufferPointer(rebasing: bytes[range]), isAll: offset == bytes.count)
                case .end:
                    // Bytes behind the message belong to no request.
                    if offset < bytes.count { keepAlive = nil }
                    state = .over
                    owner.ended(byClosing: false)
                }
            } catch {
                keepAlive = nil
                state = .over
                owner.violated(error)
            }
        }
    }

    private func next(
        in bytes: borrowing Span<UInt8>, from offset: inout Int
    ) throws(FramingError) -> ResponseReader.Step {
        if unsafe reader.phase != .head { return unsafe try reader.nextContent(in: bytes, from: &offset) }
        return unsafe try reader.nextHead(
            in: bytes, from: &offset, head: &memory.head.pointee, limits: memory.limits.pointee)
    }

    private func head(in bytes: UnsafeRawBufferPointer, _ range: Range<Int>, _ length: BodyLength) -> ArrivedHead {
        unsafe ArrivedHead(
            memory.head, UnsafeRawBufferPointer(rebasing: bytes[range]),
            UnsafeRawBufferPointer(rebasing: bytes[range.upperBound...]), length)
    }

    /// Tells of a final head. Returns where the content begins that nobody has taken.
    private func takeFinal(
        _ head: ArrivedHead, _ owner: any ConversationOwner, in bytes: UnsafeRawBufferPointer
    ) -> Int {
        keepAlive = nil
        unsafe arrived = unsafe head.rest
        defer { unsafe arrived = unsafe UnsafeRawBufferPointer(start: nil, count: 0) }
        let number = number
        let use = owner.received(final: head, of: self)
        guard number == self.number, let owner = self.owner else { return bytes.count }
        switch use {
        case .take: takeWhole(owner)
        case .leave: state = .over
        case .skip(let countMax):
            state = .skipping(bytesLeft: countMax)
            unsafe skipOn(arrived, owner)
        case .hold:
            kept = unsafe Array(head.bytes) + Array(head.rest)
            unsafe reader = unsafe reader.anew()
            state = .held
            isReading = false
            updateEvents()
        }
        return unsafe bytes.count - arrived.count
    }

    /// Hands over content that has come whole together with its head, as most short content does.
    private func takeWhole(_ owner: any ConversationOwner) {
        // Otherwise the owner has taken it already.
        guard isReadingContent, let missing = unsafe reader.missing, unsafe missing <= arrived.count else { return }
        let count = Int(missing)
        _ = unsafe reader.passed(count)
        let content = unsafe UnsafeRawBufferPointer(rebasing: arrived[..<count])
        unsafe arrived = unsafe UnsafeRawBufferPointer(rebasing: arrived[count...])
        // Bytes behind the message belong to no request.
        let isAll = unsafe arrived.isEmpty
        if !isAll { keepAlive = nil }
        let number = number
        if count > 0 { unsafe owner.received(content: content, isAll: isAll) }
        guard number == self.number else { return }
        state = .over
        owner.ended(byClosing: false)
    }

    /// Reads over content, and says when that is done.
    private func skipOn(_ bytes: UnsafeRawBufferPointer, _ owner: any ConversationOwner) {
        guard case .skipping(let left) = state else { preconditionFailure("content is being skipped") }
        if keepAlive != nil {
            unsafe skip(bytes)
            // More costs more than another connection.
            if left < bytes.count { keepAlive = nil }
            state = .skipping(bytesLeft: left - bytes.count)
            if keepAlive != nil, unsafe reader.phase != .complete { return }
        }
        state = .over
        owner.skipped()
    }

    /// Reads over content. The connection does not persist if it violates HTTP, or if other bytes follow.
    private func skip(_ bytes: UnsafeRawBufferPointer) {
        let span = unsafe bytes.bindMemory(to: UInt8.self)
        var offset = 0
        while unsafe reader.phase == .content {
            do throws(FramingError) {
                let step = unsafe try reader.nextContent(in: span.span, from: &offset)
                if case .more = step { return }
            } catch {
                keepAlive = nil
                return
            }
        }
        if offset < bytes.count { keepAlive = nil }
    }

    // MARK: writing

    /// Sends what the socket accepts and queues the rest, in order.
    private func send(_ bytes: UnsafeRawBufferPointer) -> WriteOutcome {
        guard unsentBytes == 0 else {
            unsafe pending.append(bytes)
            return .kept
        }
        switch unsafe write(bytes) {
        case .bytes(let count) where count == bytes.count:
            return .sent
        case .bytes(let count):
            unsafe queue(UnsafeRawBufferPointer(rebasing: bytes[count...]))
            return .kept
        case .wouldBlock:
            unsafe queue(bytes)
            return .kept
        case .closed, .failed:
            isSendingOver = true
            return .failed
        }
    }

    private func queue(_ bytes: UnsafeRawBufferPointer) {
        unsafe pending.append(bytes)
        updateEvents()
    }

    private func write(_ bytes: UnsafeRawBufferPointer) -> IOResult {
        guard let result = unsafe transport?.write(bytes) else { return .closed }
        if case .bytes(let count) = result {
            precondition(count <= bytes.count, "the socket accepted more bytes than it was offered")
            keeper.hasWritten(count)
        }
        return result
    }

    private func sendPending() {
        switch unsafe pending.withBytes({ unsafe write($0) }) {
        case .bytes(let count):
            unsafe pending.advance(by: count)
            updateEvents()
            if unsafe pending.isEmpty { owner?.drained() }
        case .wouldBlock:
            updateEvents()
        case .closed, .failed:
            // Nothing of it can be sent any more, and a queue that is not empty would make the event fire for ever.
            unsafe pending.truncate(to: 0)
            updateEvents()
            isSendingOver = true
            owner?.writeFailed()
        }
    }

    // MARK: the end

    /// Gives the transport away, and ends the conversation.
    func surrender() -> Transport {
        guard let surrendered = unsafe transport.take() else { preconditionFailure("a connection in use is open") }
        precondition(owner != nil, "a conversation ends once")
        clearEvents()
        owner = nil
        number += 1
        return surrendered
    }

    /// The peer is to see that the connection ends in the middle of a message.
    func resetOnClose() { unsafe transport?.resetOnClose() }

    package func close() {
        precondition(owner == nil, "a connection in use is not closed")
        // No event may outlive the socket.
        clearEvents()
        unsafe transport = nil
    }

    private func clearEvents() {
        unsafe readEvent.clear()
        unsafe writeEvent.clear()
    }
}

private func conversation(_ context: UnsafeMutableRawPointer?) -> HTTP1Conversation {
    unsafe Unmanaged<HTTP1Conversation>.fromOpaque(context!).takeUnretainedValue()
}
