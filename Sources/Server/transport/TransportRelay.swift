import EventLoop
import Glibc
import Interception
import Transport

/// Moves bytes between two connections of which at least one has TLS, after a 101 inside an opened tunnel or to an https origin (RFC 9110 §7.8), and between
/// any two where the client's first bytes are still to be judged. Two plain sockets have a `TunnelRelay` otherwise, which needs not read what it moves.
///
/// When one side has sent its last byte, the sending side towards the other is closed; the other direction goes on. When one side is reset,
/// ends without `close_notify` or fails otherwise, the other is reset (`RelayLife`). A side is not read while bytes from it wait for the other.
/// The relay retains itself from `start` until it calls `finished`, once.
final class TransportRelay: TimedObject, Relay {
    /// One of the two connections, and what waits to be written to it.
    private struct Side: ~Copyable {
        var transport: Transport
        var readEvent = IOEvent()
        var writeEvent = IOEvent()
        var output = OutputQueue()
        /// Bytes that were taken by the transport, without the greeting.
        private(set) var written: UInt64 = 0
        /// Bytes of the greeting that the transport has not taken.
        private var unsentGreeting: Int
        /// The peer has sent its last byte.
        var hasInputEnded = false
        /// Larder has sent its last byte.
        var hasOutputEnded = false

        /// - Parameter greeting: Larder's own bytes, sent first and not counted.
        init(_ transport: consuming Transport, greeting: [UInt8] = [], output bytes: [UInt8]) {
            self.transport = transport
            unsentGreeting = greeting.count
            output.append(greeting)
            output.append(bytes)
        }

        mutating func assignEvents(on loop: EventLoop, _ context: UnsafeMutableRawPointer) {
            unsafe transport.assign(&readEvent, on: loop, .read, onEvent, context)
            unsafe transport.assign(&writeEvent, on: loop, .write, onEvent, context)
        }

        /// The transport has taken so many bytes of the output.
        mutating func advance(by count: Int) {
            output.advance(by: count)
            let ofGreeting = min(count, unsentGreeting)
            unsentGreeting -= ofGreeting
            written += UInt64(count - ofGreeting)
        }

        /// Whether bytes wait for the peer to accept them.
        var isBlocked: Bool { !output.isEmpty || transport.hasUnsentBytes }
    }

    private enum Move {
        /// The gate has refused what the client sent.
        case refused(alert: TLSAlert?)
        /// Nothing more can be moved now.
        case rests
        /// There may be more.
        case goesOn
        case failed(FlowEnd, errno: CInt)
    }

    private let worker: Worker
    private let idle: Duration
    /// Holds what the origin sends to a rate. Nil: without limit.
    private let brake: FlowBrake?
    /// Has what the client sends until it is judged. Nil: it goes to the origin.
    private var gate: TunnelGate?
    private var client: Side
    private var origin: Side
    private var finished: ((TunnelEnd) -> Void)?
    private var life: RelayLife
    private var keptAlive: TransportRelay?
    /// Pieces that are moved before other connections of the worker have their turn. Each is one read.
    private static let movesPerTurnMax = 16

    /// - Parameters:
    ///   - greeting: what tells the client that it has its tunnel. It is sent first, and is not among the bytes that are counted.
    ///   - toOrigin: bytes that were read from the client before. They are sent first. `toClient` likewise.
    ///   - idle: the relay ends if no byte was moved for so long.
    ///   - brake: holds the bytes from the origin to a rate. The relay starts and stops it.
    ///   - gate: judges what the client sends first, of which nothing has been read. Nil: all is passed on.
    init(
        worker: Worker, client: consuming Transport, origin: consuming Transport, greeting: [UInt8] = [],
        toOrigin: [UInt8], toClient: [UInt8],
        idle: Duration, brake: FlowBrake?, gate: TunnelGate? = nil, finished: @escaping (TunnelEnd) -> Void
    ) {
        precondition(gate == nil || toOrigin.isEmpty, "no byte goes past the gate")
        self.gate = gate
        self.worker = worker
        self.idle = idle
        life = RelayLife(idle: idle)
        self.brake = brake
        self.finished = finished
        self.client = Side(client, greeting: greeting, output: toClient)
        self.origin = Side(origin, output: toOrigin)
    }

    var aToB: UInt64 { origin.written }
    var bToA: UInt64 { client.written }

    func start() {
        keptAlive = self
        brake?.start { [unowned self] in turn() }
        gate?.start { [unowned self] in turn() }
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe client.assignEvents(on: worker.loop, context)
        unsafe origin.assignEvents(on: worker.loop, context)
        turn()
    }

    func cancel() { perform(life.cancelled()) }

    override func timerFired() { perform(life.timerFired(isHeld: brake?.isHolding == true)) }

    /// Moves what can be moved, in both directions.
    fileprivate func turn() {
        guard life.isOpen else { return }
        worker.loop.timers.schedule(self, after: idle)
        var goesOn = false
        for _ in 0..<TransportRelay.movesPerTurnMax {
            let forward = gate.map { passGate($0) } ?? TransportRelay.move(from: &client, to: &origin, worker, nil)
            if case .refused(let alert) = forward { return refuse(alert) }
            let backward = TransportRelay.move(from: &origin, to: &client, worker, brake)
            if case .failed(let end, let code) = forward { return fail(end == .source ? .a : .b, code) }
            if case .failed(let end, let code) = backward { return fail(end == .source ? .b : .a, code) }
            switch (forward, backward) {
            case (.rests, .rests): goesOn = false
            default: goesOn = true
            }
            guard goesOn else { break }
        }
        if client.hasOutputEnded && origin.hasOutputEnded { return perform(life.closed()) }
        TransportRelay.updateEvents(&client, other: origin, isHeld: gate?.isResolving == true)
        TransportRelay.updateEvents(&origin, other: client, isHeld: brake?.isHolding == true)
        // TLS may hold bytes that no event announces.
        if goesOn { worker.loop.afterTurn { [self] in turn() } }
    }

    /// Does what the gate says, and reads for it what the client has sent.
    private func passGate(_ gate: TunnelGate) -> Move {
        switch gate.judgement {
        case .resolving: return .rests
        case .refused(let alert): return .refused(alert: alert)
        case .passed:
            origin.output.append(gate.takeReceived())
            self.gate = nil
            return .goesOn
        case .waiting: break
        }
        switch unsafe client.transport.read(into: worker.readBuffer) {
        case .bytes(let count): unsafe gate.received(UnsafeRawBufferPointer(rebasing: worker.readBuffer[..<count]))
        case .wouldBlock: return .rests
        case .closed:
            client.hasInputEnded = true
            gate.ended()
        case .failed(let code): return .failed(.source, errno: code)
        }
        return .goesOn
    }

    private func refuse(_ alert: TLSAlert?) {
        if let alert, !client.isBlocked {
            unsafe alert.record.withUnsafeBytes { _ = unsafe client.transport.write($0) }
        }
        perform(life.refused())
    }

    /// Writes what waits for `sink`, then reads `source` once.
    private static func move(
        from source: inout Side, to sink: inout Side, _ worker: Worker, _ brake: FlowBrake?
    ) -> Move {
        switch write(&sink) {
        case .bytes: break
        case .wouldBlock: return .rests
        case .closed: return .failed(.sink, errno: EPIPE)
        case .failed(let code): return .failed(.sink, errno: code)
        }
        if source.hasInputEnded {
            if !sink.hasOutputEnded { sink.transport.shutdownWrite() }
            sink.hasOutputEnded = true
            return .rests
        }
        let room = brake?.room() ?? .max
        guard room > 0 else { return .rests }
        let buffer = unsafe UnsafeMutableRawBufferPointer(rebasing: worker.readBuffer.prefix(room))
        switch unsafe source.transport.read(into: buffer) {
        case .bytes(let count):
            brake?.note(count)
            unsafe sink.output.append(UnsafeRawBufferPointer(rebasing: worker.readBuffer[..<count]))
            return .goesOn
        case .wouldBlock: return .rests
        case .closed:
            source.hasInputEnded = true
            return .goesOn
        case .failed(let code): return .failed(.source, errno: code)
        }
    }

    private func fail(_ side: TunnelSide, _ code: CInt) {
        let next = life.failed(side, errno: code, now: worker.loop.now)
        client.readEvent.remove()
        client.writeEvent.remove()
        origin.readEvent.remove()
        origin.writeEvent.remove()
        perform(next)
    }

    private func perform(_ next: RelayLife.Next) {
        switch next {
        case .nothing: break
        case .wait(let time): worker.loop.timers.schedule(self, after: time)
        case .drain(let side): perform(life.drained(isDelivered: drain(side), now: worker.loop.now))
        case .end(let end): self.end(end)
        }
    }

    private func drain(_ side: TunnelSide) -> Bool {
        switch side {
        // Nothing goes past the gate, and who has failed has no more to say.
        case .a: gate != nil || TransportRelay.drain(from: &client, to: &origin, worker)
        case .b: TransportRelay.drain(from: &origin, to: &client, worker)
        }
    }

    /// Passes on what is left in a source that has failed.
    ///
    /// - Returns: whether nothing is left to do: the sink's peer has acknowledged all bytes, or has failed too.
    private static func drain(from source: inout Side, to sink: inout Side, _ worker: Worker) -> Bool {
        for _ in 0..<movesPerTurnMax {
            switch write(&sink) {
            case .bytes: break
            case .wouldBlock: return false
            case .closed, .failed: return true
            }
            if source.hasInputEnded { return sink.transport.delivered.map { $0.waiting == 0 } ?? true }
            switch unsafe source.transport.read(into: worker.readBuffer) {
            case .bytes(let count):
                unsafe sink.output.append(UnsafeRawBufferPointer(rebasing: worker.readBuffer[..<count]))
            case .wouldBlock, .closed, .failed: source.hasInputEnded = true
            }
        }
        return false
    }

    /// Writes what waits. Returns `.bytes(0)` if nothing is left.
    private static func write(_ sink: inout Side) -> IOResult {
        while true {
            let flushed = sink.transport.flush()
            guard flushed == .bytes(0), !sink.output.isEmpty else { return flushed }
            let result = unsafe sink.output.withBytes { unsafe sink.transport.write($0) }
            guard case .bytes(let count) = result else { return result }
            sink.advance(by: count)
        }
    }

    private static func updateEvents(_ side: inout Side, other: borrowing Side, isHeld: Bool) {
        let reads = !side.hasInputEnded && !other.isBlocked && !isHeld
        let writes = side.isBlocked
        if side.transport.awaits(.read, toRead: reads, toWrite: writes) {
            side.readEvent.add()
        } else {
            side.readEvent.remove()
        }
        if side.transport.awaits(.write, toRead: reads, toWrite: writes) {
            side.writeEvent.add()
        } else {
            side.writeEvent.remove()
        }
    }

    private func end(_ reason: TunnelEnd) {
        guard let finished else { return }
        self.finished = nil
        worker.loop.timers.cancel(self)
        brake?.stop()
        gate?.cancel()
        client.readEvent.clear()
        client.writeEvent.clear()
        origin.readEvent.clear()
        origin.writeEvent.clear()
        if reason.resets(.a, isOwed: client.isBlocked) { client.transport.resetOnClose() }
        if reason.resets(.b, isOwed: origin.isBlocked) { origin.transport.resetOnClose() }
        keptAlive = nil
        finished(reason)
    }
}

private let onEvent: ReadinessCallback = { _, _, context in
    unsafe Unmanaged<TransportRelay>.fromOpaque(context!).takeUnretainedValue().turn()
}
