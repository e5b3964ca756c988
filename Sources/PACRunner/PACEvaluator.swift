package import Routing
import EventLoop
import Processes

/// A process that evaluates one PAC file. Its calls block, at most for as long as they are told.
///
/// After `timedOut` or `helper` it is of no more use: what it says next might belong to the question before.
package final class PACEvaluator {
    let process: HelperProcess
    private var replies = PACMessageBuffer(contentBytesMax: PACMessageBuffer.replyBytesMax)

    /// The first argument with which the executable becomes such a process. It is no command: no help names it.
    package static let word = "--evaluate-pac"
    /// How the process is started: this program itself, even if its file has been replaced.
    package static let ownProgram = "/proc/self/exe"

    /// Starts the process and gives it the script.
    ///
    /// - Parameters:
    ///   - program: the executable `larder`.
    ///   - timeout: for each question. The process gets about as much processor time.
    package init(
        _ script: [UInt8], program: String = PACEvaluator.ownProgram, timeout: Duration
    ) throws(PACFailure) {
        let seconds = timeout.components.seconds + 1
        do throws(HelperFailure) {
            process = try HelperProcess([program, PACEvaluator.word, "\(seconds)"])
        } catch {
            throw PACFailure(error)
        }
        switch try reply(to: .script(script), within: PACLimits.startTimeout) {
        case .ready: break
        case .failure(let text): throw .script(readable(text))
        case .answer: throw .helper("answers what it was not asked")
        }
    }

    /// Asks the script for the routes to an origin.
    package func routes(to origin: Origin, within timeout: Duration) throws(PACFailure) -> [Route] {
        let (url, host) = origin.pacQuestion
        switch try reply(to: .question(url: url, host: host), within: timeout) {
        case .answer(let text):
            do throws(PACAnswerFault) { return try PACAnswer(text).routes } catch { throw .answer(error) }
        case .failure(let text): throw .script(readable(text))
        case .ready: throw .helper("answers what it was not asked")
        }
    }

    private func reply(to request: PACRequest, within timeout: Duration) throws(PACFailure) -> PACReply {
        let deadline = ContinuousClock.now + timeout
        do throws(HelperFailure) {
            try process.send(request.bytes, until: deadline)
            while true {
                do throws(PACMessageFault) {
                    if let message = try replies.next() {
                        guard replies.isEmpty else { throw .unknownKind }
                        return try PACReply(message)
                    }
                } catch {
                    throw .ended
                }
                replies.append(try process.receive(until: deadline))
            }
        } catch {
            throw PACFailure(error)
        }
    }
}

extension PACFailure {
    fileprivate init(_ failure: HelperFailure) {
        switch failure {
        case .system(let code): self = .helper("cannot be used: \(systemErrorText(code))")
        case .ended: self = .helper("has ended")
        case .timedOut: self = .timedOut
        }
    }
}
