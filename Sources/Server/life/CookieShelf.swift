import EventLoop
import Settings
import Synchronization

/// The cookie jars of `cookie_jars`. A reload keeps those whose name and file stay the same.
///
/// May be used by every thread.
package final class CookieShelf: Sendable {
    private let jars = Locked<[SharedCookieJar]>([])
    /// Some jar has a file.
    private let hasFiles = Atomic(false)
    /// A job that looks after the files waits or runs.
    private let isTending = Atomic(false)

    init() {}

    package var all: [SharedCookieJar] { jars.withLock { $0 } }

    /// Nil only for a request whose configuration is no longer in force.
    package func jar(named name: String) -> SharedCookieJar? { jars.withLock { $0.first { $0.name == name } } }

    /// Opens and closes jars, and reads files that have changed. Blocks.
    func adopt(_ settings: [CookieJarSettings]) {
        let before = all
        let after = settings.map { wanted in
            before.first { $0.name == wanted.name && $0.path == wanted.file }
                ?? SharedCookieJar(wanted.name, file: wanted.file)
        }
        for jar in before where !after.contains(where: { $0 === jar }) { jar.tend() }
        for jar in after { jar.look() }
        hasFiles.store(after.contains { $0.path != nil }, ordering: .relaxed)
        jars.withLock { $0 = after }
    }

    /// Lets a thread of the pool read what others have changed and save what has changed here. Called once a second.
    func tend(on pool: BlockingPool) {
        guard hasFiles.load(ordering: .relaxed), !isTending.exchange(true, ordering: .relaxed) else { return }
        let isAccepted = pool.submit { [self] in
            for jar in all { jar.tend() }
            isTending.store(false, ordering: .relaxed)
        }
        if !isAccepted { isTending.store(false, ordering: .relaxed) }
    }

    /// Saves what has changed. Blocks.
    func close() { for jar in all { jar.tend() } }
}
