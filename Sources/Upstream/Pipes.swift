import EventLoop

/// One value that a task waits for and that the client's thread provides, once.
final class Promise<Value: Sendable>: Sendable {
    private enum State: Sendable {
        case open
        case awaited(CheckedContinuation<Result<Value, ClientError>, Never>)
        case decided(Result<Value, ClientError>)
    }
    private let state = Locked(State.open)

    /// Waits for the value. One task may wait.
    func value() async -> Result<Value, ClientError> {
        await withCheckedContinuation { continuation in
            let known: Result<Value, ClientError>? = state.withLock { state in
                switch state {
                case .open:
                    state = .awaited(continuation)
                    return nil
                case .awaited: preconditionFailure("one task waits for an answer")
                case .decided(let result): return result
                }
            }
            if let known { continuation.resume(returning: known) }
        }
    }

    /// Later results are dropped.
    func decide(_ result: Result<Value, ClientError>) {
        let waiting: CheckedContinuation<Result<Value, ClientError>, Never>? = state.withLock { state in
            switch state {
            case .open:
                state = .decided(result)
                return nil
            case .awaited(let continuation):
                state = .decided(result)
                return continuation
            case .decided: return nil
            }
        }
        waiting?.resume(returning: result)
    }
}

/// The body of an answer on its way from the client's thread to a task: a bounded buffer.
///
/// The thread stops reading from the server when `add` returns false, and goes on when `onRoom` was called.
final class DownloadPipe: Sendable {
    private typealias Reader = CheckedContinuation<Result<[UInt8]?, ClientError>, Never>

    private struct State {
        var pieces: [[UInt8]] = []
        var first = 0
        var bytes = 0
        var bytesMost = 0
        var expected: UInt64?
        /// Nil while the body may go on.
        var end: Result<Void, ClientError>?
        var reader: Reader?
        /// The thread waits for room.
        var isFull = false

        mutating func take() -> [UInt8]? {
            guard first < pieces.count else { return nil }
            defer {
                pieces[first] = []
                first += 1
                if first == pieces.count {
                    pieces.removeAll(keepingCapacity: true)
                    first = 0
                }
            }
            bytes -= pieces[first].count
            return pieces[first]
        }
    }
    private let state = Locked(State())
    private let capacity: Int
    private let onRoom: @Sendable () -> Void
    private let onCancel: @Sendable () -> Void

    /// - Parameters:
    ///   - capacity: bytes that wait before the server has to.
    ///   - onRoom: called when the reader has made room in a full buffer.
    ///   - onCancel: called when the reading task was cancelled.
    init(capacity: Int, onRoom: @escaping @Sendable () -> Void, onCancel: @escaping @Sendable () -> Void) {
        self.capacity = capacity
        self.onRoom = onRoom
        self.onCancel = onCancel
    }

    var expected: UInt64? { state.withLock { $0.expected } }
    /// The most bytes that have waited at a time.
    var bytesMost: Int { state.withLock { $0.bytesMost } }
    /// Whether the last byte has been taken, or an error.
    var isFinished: Bool { state.withLock { $0.end != nil && $0.first == $0.pieces.count } }

    var hasEnded: Bool { state.withLock { $0.end != nil } }

    // MARK: the client's thread

    func expect(_ length: UInt64?) { state.withLock { $0.expected = length } }

    /// Gives a piece to the reader. Returns false if no more may follow for now.
    func add(_ piece: [UInt8]) -> Bool {
        var reader: Reader?
        let hasRoom = state.withLock { state in
            guard state.end == nil else { return true }
            if let waiting = state.reader.take() {
                reader = waiting
                return true
            }
            state.pieces.append(piece)
            state.bytes += piece.count
            state.bytesMost = max(state.bytesMost, state.bytes)
            state.isFull = state.bytes >= capacity
            return !state.isFull
        }
        reader?.resume(returning: .success(piece))
        return hasRoom
    }

    /// Ends the body. Pieces before an error are still delivered.
    func end(_ result: Result<Void, ClientError>) {
        let reader: Reader? = state.withLock { state in
            guard state.end == nil else { return nil }
            state.end = result
            return state.reader.take()
        }
        reader?.resume(returning: result.map { nil })
    }

    // MARK: the task

    /// The next piece. Returns nil at the end. One task reads.
    func next() async throws(ClientError) -> [UInt8]? {
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (reader: Reader) in
                var mustResume = false
                let known: Result<[UInt8]?, ClientError>? = state.withLock { state in
                    if let piece = state.take() {
                        mustResume = state.isFull && state.bytes <= capacity / 2
                        if mustResume { state.isFull = false }
                        return .success(piece)
                    }
                    if let end = state.end { return end.map { nil } }
                    precondition(state.reader == nil, "one task reads a body")
                    state.reader = reader
                    return nil
                }
                if mustResume { onRoom() }
                if let known { reader.resume(returning: known) }
            }
        } onCancel: {
            cancel()
        }
        return try result.get()
    }

    private func cancel() {
        end(.failure(.cancelled))
        onCancel()
    }
}

/// The body of a request on its way from a task to the client's thread: a bounded buffer.
final class UploadPipe: Sendable {
    enum Taken: Sendable {
        case piece([UInt8])
        /// `onPiece` will be called.
        case nothing
        case end
        case failed(ClientError)
    }

    private struct State {
        var pieces: [[UInt8]] = []
        var bytes = 0
        var bytesMost = 0
        var total: UInt64 = 0
        var end: Result<Void, ClientError>?
        var writer: CheckedContinuation<Result<Void, ClientError>, Never>?
        var isAwaited = false
        /// The exchange is over: nobody takes anything.
        var isClosed = false
        var producer: Task<Void, Never>?
    }
    private let state = Locked(State())
    private let capacity: Int
    private let length: UInt64?
    private let onPiece: @Sendable () -> Void

    /// - Parameter length: what was announced. More and less are errors.
    init(capacity: Int, length: UInt64?, onPiece: @escaping @Sendable () -> Void) {
        self.capacity = capacity
        self.length = length
        self.onPiece = onPiece
    }

    /// The most bytes that have waited at a time.
    var bytesMost: Int { state.withLock { $0.bytesMost } }

    // MARK: the task

    /// - Parameter producer: is cancelled when the exchange ends.
    func isProduced(by producer: Task<Void, Never>) {
        let isClosed = state.withLock { state in
            state.producer = producer
            return state.isClosed
        }
        if isClosed { producer.cancel() }
    }

    /// Waits until there is room, and adds a piece.
    func write(_ piece: [UInt8]) async throws(ClientError) {
        let result: Result<Void, ClientError> = await withTaskCancellationHandler {
            await withCheckedContinuation { writer in
                var mustWake = false
                let known: Result<Void, ClientError>? = state.withLock { state in
                    guard !state.isClosed else { return .failure(.cancelled) }
                    state.total += UInt64(piece.count)
                    if let length, state.total > length {
                        return .failure(.bodyUnavailable("it is longer than the \(length) bytes that were announced"))
                    }
                    if !piece.isEmpty {
                        state.pieces.append(piece)
                        state.bytes += piece.count
                        state.bytesMost = max(state.bytesMost, state.bytes)
                        mustWake = state.isAwaited
                        state.isAwaited = false
                    }
                    guard state.bytes >= capacity else { return .success(()) }
                    precondition(state.writer == nil, "one task writes a body")
                    state.writer = writer
                    return nil
                }
                if mustWake { onPiece() }
                if let known { writer.resume(returning: known) }
            }
        } onCancel: {
            close()
        }
        try result.get()
    }

    /// The body is complete, or there is no more of it.
    func end(_ result: Result<Void, ClientError>) {
        let mustWake = state.withLock { state in
            guard state.end == nil else { return false }
            var result = result
            if case .success = result, let length, state.total < length {
                result = .failure(.bodyUnavailable("it is shorter than the \(length) bytes that were announced"))
            }
            state.end = result
            defer { state.isAwaited = false }
            return state.isAwaited
        }
        if mustWake { onPiece() }
    }

    // MARK: the client's thread

    func take() -> Taken {
        var writer: CheckedContinuation<Result<Void, ClientError>, Never>?
        let taken: Taken = state.withLock { state in
            guard !state.pieces.isEmpty else {
                switch state.end {
                case .success: return .end
                case .failure(let error): return .failed(error)
                case nil:
                    state.isAwaited = true
                    return .nothing
                }
            }
            let piece = state.pieces.removeFirst()
            state.bytes -= piece.count
            if state.bytes < capacity { writer = state.writer.take() }
            return .piece(piece)
        }
        writer?.resume(returning: .success(()))
        return taken
    }

    /// Nothing will be taken any more. A task that writes gets an error, and the producer is cancelled.
    func close() {
        let (writer, producer) = state.withLock { state in
            state.isClosed = true
            state.pieces = []
            state.bytes = 0
            return (state.writer.take(), state.producer.take())
        }
        producer?.cancel()
        writer?.resume(returning: .failure(.cancelled))
    }
}
