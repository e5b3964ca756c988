package import EventLoop
package import Storage

/// Frees and changes many stored responses, each on the worker that allocated it.
///
/// With mimalloc (decision 29) a block that another thread frees is of no use before the thread that allocated it has looked for it. After a purge of a
/// million responses a worker would look for some millions of blocks at once, and serve nobody meanwhile. Here it frees them itself, for a millisecond at a
/// time, and serves its clients in between.
package struct ResponseHomes {
    /// The inboxes of the workers, by their numbers.
    private let inboxes: [Inbox]

    package init(_ inboxes: [Inbox]) { self.inboxes = inboxes }

    /// Frees responses. When it returns, it is done: so each worker has no more than this to free.
    package func free(_ lists: consuming [[StoredRecord]]) { visit(lists) { _ in } }

    /// Calls `work` with each response, and then frees it. When it returns, it is done.
    package func visit(_ lists: consuming [[StoredRecord]], _ work: @escaping @Sendable (StoredRecord) -> Void) {
        let isDone = CountingSemaphore()
        var portions: [UInt8: Portion] = [:]
        while let list = lists.popLast() {
            let number = list.first?.allocator ?? 0
            if let portion = portions[number] {
                portion.add(list)
            } else if let inbox = inbox(of: number) {
                let portion = Portion(inbox, isDone, work)
                portion.add(list)
                portions[number] = portion
            } else {
                list.forEach(work)  // no worker allocated it
            }
        }
        var awaited = portions.values.count { $0.post() }
        while awaited > 0, isDone.wait(timeout: Self.patience) { awaited -= 1 }
        // What a worker has not done by now, because it is busy or has ended, is done here.
        for portion in portions.values { portion.finish() }
    }

    private static let patience = Duration.seconds(1)

    private func inbox(of allocator: UInt8) -> Inbox? {
        let index = Int(allocator) - 1
        return inboxes.indices.contains(index) ? inboxes[index] : nil
    }

    /// What one worker has to do.
    private final class Portion: Sendable {
        private let lists = Locked<[[StoredRecord]]>([])
        private let inbox: Inbox
        private let isDone: CountingSemaphore
        private let work: @Sendable (StoredRecord) -> Void

        /// How long a worker does this in one turn. Freeing a response takes some 0.5 µs, or 50 µs if it was the last of its pages, which go to the system.
        private static let turn = Duration.milliseconds(1)

        init(_ inbox: Inbox, _ isDone: CountingSemaphore, _ work: @escaping @Sendable (StoredRecord) -> Void) {
            self.inbox = inbox
            self.isDone = isDone
            self.work = work
        }

        func add(_ list: consuming [StoredRecord]) { lists.withLock { [list] in $0.append(list) } }

        /// Returns false if the worker has ended.
        func post() -> Bool { inbox.post(go) }

        private func go() {
            let end = ContinuousClock.now + Portion.turn
            while next() { if ContinuousClock.now >= end, post() { return } }
            isDone.signal()
        }

        func finish() { while next() {} }

        /// Returns false if there is no list left.
        private func next() -> Bool {
            guard let list = lists.withLock({ $0.popLast() }) else { return false }
            list.forEach(work)
            return true
        }
    }
}
