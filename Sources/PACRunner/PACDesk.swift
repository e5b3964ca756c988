import Accounts
package import Routing
import EventLoop
import Processes
import Synchronization

/// The thread that starts and asks the process for a PAC file. It has one question at a time; the others wait, and their number is bounded.
///
/// Each PAC file has a desk of its own, so that a script that loops keeps nobody from another one. May be used by every thread. A Larder
/// without PAC files has no such thread.
package final class PACDesk: Sendable {
    private let pool = Locked<BlockingPool?>(nil)
    private let isClosed = Atomic(false)
    /// The process that is asked at this moment.
    private let asked = Locked<HelperProcess?>(nil)
    /// The executable that evaluates.
    let program: String

    package init(program: String = PACEvaluator.ownProgram) { self.program = program }

    /// Makes what asks a PAC file that is to be fetched. Until then it fails all questions.
    package func open(_ download: PACDownload, timeout: Duration, lifetime: Duration) -> PACScript {
        PACScript(download, desk: self, timeout: timeout, lifetime: lifetime)
    }

    /// Reads a PAC file for the first time, and makes what asks it. Blocks.
    package func open(
        path: String, script: [UInt8], timeout: Duration, lifetime: Duration
    ) throws(PACFailure) -> PACScript {
        let outcome = Locked<Result<PACScript, PACFailure>>(.failure(.busy))
        let isDone = CountingSemaphore()
        let isAccepted = submit { [self] in
            do throws(PACFailure) {
                let evaluator = try PACEvaluator(script, program: program, timeout: timeout)
                let made = PACScript(
                    path: path, desk: self, script: script, evaluator: evaluator, timeout: timeout, lifetime: lifetime)
                outcome.withLock { $0 = .success(made) }
            } catch {
                outcome.withLock { $0 = .failure(error) }
            }
            isDone.signal()
        }
        if isAccepted { isDone.wait() }
        return try outcome.withLock { $0 }.get()
    }

    /// Runs a job on the desk's thread.
    ///
    /// - Returns: false if too many are waiting, or if the desk is closed. The job does not run then.
    func submit(_ job: @escaping @Sendable () -> Void) -> Bool {
        pool.withLock { pool in
            guard !isClosed.load(ordering: .relaxed) else { return false }
            if pool == nil {
                do throws(EventLoopError) {
                    pool = try BlockingPool(name: "pac", threads: 1, queueMax: PACLimits.questionsMax)
                } catch {
                    Diagnostics.error("PAC files cannot be evaluated: no thread can be started")
                    return false
                }
            }
            return pool?.submit(job) == true
        }
    }

    /// Whether the proxy has stopped: nobody waits for answers any more.
    var isOver: Bool { isClosed.load(ordering: .relaxed) }

    /// Notes the process that is about to be asked, so that nobody waits for it once the desk is closed.
    ///
    /// - Returns: false if the desk is closed.
    func willAsk(_ process: HelperProcess) -> Bool {
        asked.withLock { $0 = process }
        return !isOver
    }

    func hasAsked() { asked.withLock { $0 = nil } }

    /// Ends the question under way, and the thread. Blocks for a moment.
    package func close() {
        let pool = pool.withLock { pool in
            isClosed.store(true, ordering: .relaxed)
            defer { pool = nil }
            return pool
        }
        asked.withLock { $0?.interrupt() }
        pool?.shutdown()
    }
}
