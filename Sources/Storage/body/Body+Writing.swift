internal import Synchronization

/// The writer's side: one thread at a time, until `finish` or `fail`.
extension Body {
    package enum AppendResult: Equatable, Sendable {
        case appended
        /// The budget has no room even after evicting. Nothing was appended. Move the body (`Tiers.moveToBackStore`), continue with
        /// `abandonStorage`, or fail.
        case full
        /// The body would exceed its expected length or, if none is known, the length that it may have. Nothing was appended.
        case tooLarge
    }

    /// Appends all of the bytes or none.
    package func append(_ bytes: UnsafeRawBufferPointer) -> AppendResult {
        precondition(state == .growing, "a body that ended does not grow")
        if hasWindow { return unsafe appendPassing(bytes) }
        let start = published.load(ordering: .relaxed)
        guard bytes.count <= room(from: start) else { return .tooLarge }
        guard reserve(upTo: start + bytes.count) else { return .full }
        unsafe copy(bytes, to: start)
        publish(start + bytes.count)
        return .appended
    }

    /// Room for the writer to read(2) into, at most `hint` bytes, often less: up to the end of a page. Follow with
    /// `commit`. Returns nil as `append` returns `.full` or `.tooLarge`, and where the body is as long as expected.
    package func writable(_ hint: Int) -> UnsafeMutableRawBufferPointer? {
        precondition(state == .growing, "a body that ended does not grow")
        if hasWindow { return unsafe writablePassing(hint) }
        let start = published.load(ordering: .relaxed)
        let wanted = min(hint, room(from: start))
        guard wanted > 0, reserve(upTo: start + 1) else { return nil }
        return unsafe gap(from: start, limit: wanted)
    }

    /// Publishes `count` bytes written into what `writable` gave.
    package func commit(_ count: Int) {
        if hasWindow { return commitPassing(count) }
        let start = published.load(ordering: .relaxed)
        precondition(count >= 0 && start + count <= capacity, "more bytes than there was room for")
        if count > 0 { publish(start + count) }
    }

    /// No more bytes follow. False: fewer came than expected; the body has failed.
    package func finish() -> Bool {
        let isWhole = announcedLength == nil || announcedLength == published.load(ordering: .relaxed)
        end(isWhole ? .complete : .failed)
        return isWhole
    }

    /// Ends the body as failed: the transfer broke off. No effect on a body that has ended.
    package func fail() {
        if state == .growing { end(.failed) }
    }

    /// Weighs its response again, with what the body holds now.
    func reweigh() {
        if let home { shelves.reweigh(self, home) }
    }

    /// Bytes that may still come.
    func room(from start: Int) -> Int {
        if let announcedLength { return announcedLength - start }
        return windowed.load(ordering: .relaxed) ? .max - start : lengthMax - start
    }

    /// Copies into reserved pages.
    func copy(_ bytes: UnsafeRawBufferPointer, to start: Int) {
        var copied = 0
        while copied < bytes.count {
            let target = unsafe gap(from: start + copied, limit: bytes.count - copied)
            let source = unsafe UnsafeRawBufferPointer(rebasing: bytes[copied..<copied + target.count])
            unsafe target.copyMemory(from: source)
            copied += target.count
        }
    }

    /// The reserved bytes from an offset to the end of its page, at most `limit`.
    func gap(from offset: Int, limit: Int) -> UnsafeMutableRawBufferPointer {
        let place = layout.page(at: offset)
        guard let base = unsafe page(place.index) else { preconditionFailure("the page was reserved") }
        return unsafe UnsafeMutableRawBufferPointer(
            start: base + (offset - place.start), count: min(limit, place.end - offset))
    }

    /// Sequentially consistent, as is the registration of a wait: of the writer that publishes and then looks for waits,
    /// and the reader that registers and then looks for bytes, at least one sees the other.
    private func publish(_ length: Int) {
        precondition(length <= capacity, "what is published has pages")
        let start = published.load(ordering: .relaxed)
        published.store(length, ordering: .sequentiallyConsistent)
        if waitCount.load(ordering: .sequentiallyConsistent) > 0 { wakeReaders() }
        if windowed.load(ordering: .relaxed) {
            freeReadPages()
        } else if isSparse {
            writeBlocks(start..<length)
        }
    }

    func end(_ state: State) {
        precondition(self.state == .growing, "a body ends once")
        if hasWindow {
            phase.store(state.rawValue, ordering: .relaxed)
            return wakePassing()
        }
        if state == .complete, let large { large.setLength(published.load(ordering: .relaxed)) }
        phase.store(state.rawValue, ordering: .sequentiallyConsistent)
        if waitCount.load(ordering: .sequentiallyConsistent) > 0 { wakeReaders() }
        if let large { endBlocks(large) }
        // It was weighed on insert with what it held or promised. Most often that came true.
        if held.load(ordering: .relaxed) != promised { reweigh() }
    }
}
