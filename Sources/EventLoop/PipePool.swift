import CLarder

/// A kernel pipe for `splice`.
final class Pipe {
    let readEnd: Descriptor
    let writeEnd: Descriptor
    /// Its capacity in bytes.
    let capacity: Int

    init(readEnd: consuming Descriptor, writeEnd: consuming Descriptor, capacity: Int) {
        self.readEnd = readEnd
        self.writeEnd = writeEnd
        self.capacity = capacity
    }
}

/// The empty pipes of one loop, kept for the next tunnel: making a pipe costs three system calls and kernel memory.
package final class PipePool {
    static let capacityWanted: CInt = 1 << 20
    /// The least capacity in bytes that is worth splicing through. A process that has used up its quota of large pipes gets a quarter of
    /// this or less.
    static let capacityMin = 256 << 10
    /// The most pipes that are kept. Each has two descriptors, and up to 1 MiB of kernel memory when filled.
    static let idleMax = 32

    private var idle: [Pipe] = []

    package init() {}

    /// Returns an empty pipe. Returns nil if the system cannot make one.
    func take() -> Pipe? {
        if let pipe = idle.popLast() { return pipe }
        var ends: [CInt] = [-1, -1]
        let capacity = unsafe ends.withUnsafeMutableBufferPointer { ends in
            unsafe clarder_pipe(ends.baseAddress!, PipePool.capacityWanted)
        }
        guard ends[0] >= 0, ends[1] >= 0 else { return nil }
        let pipe = Pipe(
            readEnd: Descriptor(adopting: ends[0]), writeEnd: Descriptor(adopting: ends[1]), capacity: Int(capacity))
        return pipe.capacity >= PipePool.capacityMin ? pipe : nil
    }

    /// Keeps an empty pipe for later.
    func give(_ pipe: Pipe) {
        if idle.count < PipePool.idleMax { idle.append(pipe) }
    }

    var idleCount: Int { idle.count }
}
