/// Threads for calls into libraries that may hang for long, such as those that ask a server of their own.
///
/// Calls with the same key run one after the other. So what hangs for one key occupies one thread, and the calls of other keys go on. There are
/// threads only while there are calls. Whoever waits for the result of a call needs a time limit: a call that hangs cannot be ended.
package final class CallPool: Sendable {
    private struct Call {
        let number: UInt64
        let key: String
        let run: @Sendable () -> Void
    }
    private struct State {
        var lastNumber: UInt64 = 0
        /// In the order in which they came.
        var waiting: [Call] = []
        var busyKeys: Set<String> = []
        var threadCount = 0
        var isClosed = false

        /// The oldest call whose key is free. Occupies the key.
        mutating func takeCall() -> Call? {
            guard let index = waiting.firstIndex(where: { !busyKeys.contains($0.key) }) else { return nil }
            let call = waiting.remove(at: index)
            busyKeys.insert(call.key)
            return call
        }
    }
    private let state = Locked(State())
    private let name: String
    private let threadsMax: Int
    private let waitingMax: Int

    /// - Parameters:
    ///   - name: the name of the threads. The kernel keeps 15 bytes.
    ///   - waitingMax: calls that no thread has begun.
    package init(name: String, threadsMax: Int, waitingMax: Int) {
        precondition(threadsMax > 0 && waitingMax > 0, "a pool needs threads and a queue")
        self.name = name
        self.threadsMax = threadsMax
        self.waitingMax = waitingMax
    }

    /// Runs `call` on a thread of the pool, when no other call with this key is under way.
    ///
    /// - Returns: false if too many calls wait, if there is no thread, or if the pool is closed. The call does not run then.
    package func submit(key: String, _ call: @escaping @Sendable () -> Void) -> Bool {
        let accepted: (number: UInt64, needsThread: Bool)? = state.withLock { state in
            guard !state.isClosed, state.waiting.count < waitingMax else { return nil }
            state.lastNumber += 1
            state.waiting.append(Call(number: state.lastNumber, key: key, run: call))
            // Who occupies the key, or is the last thread that there may be, looks for another call when it is done.
            let needsThread = !state.busyKeys.contains(key) && state.threadCount < threadsMax
            if needsThread { state.threadCount += 1 }
            return (state.lastNumber, needsThread)
        }
        guard let accepted else { return false }
        guard accepted.needsThread else { return true }
        do throws(EventLoopError) {
            // Nobody joins it: it may hang when the process ends.
            _ = try startThread(name: name) { [self] in work() }
            return true
        } catch {
            return state.withLock { state in
                state.threadCount -= 1
                let index = state.waiting.firstIndex { $0.number == accepted.number }
                if let index { state.waiting.remove(at: index) }
                return index == nil
            }
        }
    }

    /// Drops the calls that wait. Does not wait for those under way.
    package func close() {
        let dropped = state.withLock { state in
            state.isClosed = true
            defer { state.waiting = [] }
            return state.waiting
        }
        _ = dropped  // release what the calls hold outside the lock
    }

    /// Calls that no thread has begun, and threads.
    package var counts: (waiting: Int, threads: Int) { state.withLock { ($0.waiting.count, $0.threadCount) } }

    private func work() {
        while let call = nextCall() {
            call.run()
            state.withLock { _ = $0.busyKeys.remove(call.key) }
        }
    }

    /// Nil if there is none: the thread ends then, and is not counted any more.
    private func nextCall() -> Call? {
        state.withLock { state in
            let call = state.takeCall()
            if call == nil { state.threadCount -= 1 }
            return call
        }
    }
}
