import Admin

/// `larder stats [--json]`
func statsCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    guard arguments.words.isEmpty else { throw UsageError("stats takes no \"\(arguments.words[0])\"") }
    guard let client = adminClient(arguments, console) else { return ExitStatus.usage }
    do throws(AdminClient.Failure) {
        let answer = try client.ask("GET", "/stats")
        guard answer.status == 200 else {
            console.error("larder: the admin server answers with status \(answer.status)")
            return ExitStatus.failed
        }
        return show(answer.body, arguments, console)
    } catch {
        console.error("larder: \(error.text)")
        return ExitStatus.failed
    }
}

private func show(_ body: [UInt8], _ arguments: Arguments, _ console: Console) -> Int32 {
    if arguments.has(.json) {
        console.print(String(decoding: body, as: UTF8.self).trimmingNewline)
        return ExitStatus.done
    }
    do throws(JSONError) {
        console.print(statisticsTable(try JSONValue(parsing: body)))
        return ExitStatus.done
    } catch {
        console.error("larder: the answer is not JSON: \(error.text)")
        return ExitStatus.failed
    }
}
