import Glibc
import PAC
import PACRunner
import Routing
import Server

/// Becomes the process that evaluates a PAC file, if the program was started as one. It answers what comes over its standard input, one question
/// at a time, until nobody asks any more.
///
/// The proxy trusts nothing of it: see docs/decisions/0020-pac-files-in-a-process-of-their-own.md.
func evaluatePACIfAsked() {
    let words = CommandLine.arguments
    guard words.count == 3, words[1] == PACEvaluator.word, let seconds = Int(words[2]) else { return }
    guard EvaluatorLimits.apply(memoryBytesMax: PACLimits.memoryBytesMax) else { exit(ExitStatus.failed) }
    var requests = PACMessageBuffer(contentBytesMax: PACMessageBuffer.scriptBytesMax)
    var engine: PACEngine?
    do {
        while true {
            while let message = try requests.next() {
                let request = try PACRequest(message)
                guard EvaluatorLimits.allowProcessorTime(seconds: seconds) else { exit(ExitStatus.failed) }
                let (reply, isLast) = reply(to: request, &engine)
                try write(reply.bytes)
                if isLast { exit(ExitStatus.failed) }
            }
            requests.append(try read())
        }
    } catch {
        // The proxy has ended, or has started another process.
        exit(ExitStatus.done)
    }
}

/// The reply, and whether the process should end with it.
private func reply(to request: PACRequest, _ engine: inout PACEngine?) -> (PACReply, isLast: Bool) {
    do throws(PACEngineFailure) {
        switch request {
        case .script(let text):
            engine = try PACEngine(script: text)
            return (.ready, false)
        case .question(let url, let host):
            guard let engine else { return (.failure(Array("there is no script".utf8)), true) }
            let answer = try engine.findProxy(url: url, host: host)
            guard answer.count <= PACMessageBuffer.replyBytesMax else {
                let text = "the answer is longer than \(PACMessageBuffer.replyBytesMax) bytes"
                return (.failure(Array(text.utf8)), false)
            }
            return (.answer(answer), false)
        }
    } catch {
        return (.failure(Array(error.text.prefix(PACMessageBuffer.replyBytesMax))), error.isExhaustion)
    }
}

/// The other end has closed the socket, or it cannot be used.
private struct Ended: Error {}

private func read() throws(Ended) -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while true {
        let count = unsafe buffer.withUnsafeMutableBytes { unsafe Glibc.read(STDIN_FILENO, $0.baseAddress, $0.count) }
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { throw Ended() }
        return Array(buffer[..<count])
    }
}

private func write(_ bytes: [UInt8]) throws(Ended) {
    var rest = bytes[...]
    while !rest.isEmpty {
        let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(STDIN_FILENO, $0.baseAddress, $0.count) }
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { throw Ended() }
        rest = rest.dropFirst(count)
    }
}
