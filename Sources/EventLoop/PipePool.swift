import CLarder

/// A kernel pipe that bytes are spliced through.
final class Pipe {
    let readEnd: Descriptor
    let writeEnd: Descriptor
    /// Bytes it holds at most.
    let capacity: Int

    init(readEnd: consuming Descriptor, writeEnd: consuming Descriptor, capacity: Int) {
        self.readEnd = readEnd
        self.writeEnd = writeEnd
        self.capacity = capacity
    }
}

/// Empty pipes of one loop, kept for the next tunnel: making one costs three system calls and kernel memory.
package final class PipePool {
    static let capacityWanted: CInt = 1 << 20
    /// What an unprivileged process gets when its quota of large pipes is used up is a quarter of this or less, and
    /// then splicing gains nothing over copying.
    static let capacityMin = 256 << 10
    /// Two descriptors and up to 1 MiB of kernel memory (when filled) each.
    static let idleMax = 32

    private var idle: [Pipe] = []

    package init() {}

    /// An empty pipe; nil when the system has none to give.
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

    /// Takes back a pipe that is empty.
    func give(_ pipe: Pipe) {
        if idle.count < PipePool.idleMax { idle.append(pipe) }
    }

    var idleCount: Int { idle.count }
}
