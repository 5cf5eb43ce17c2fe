// ciphercost-agent-go generates load by Go's database drivers and does nothing else. It reads and writes lines as described in PROTOCOL.md.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
)

func main() {
	os.Exit(serve(bufio.NewReaderSize(os.Stdin, 1<<16), os.Stdout))
}

// serve answers the lines of the input until it ends, and returns the exit status.
func serve(input *bufio.Reader, output io.Writer) int {
	isolate()
	session := newSession(func(answer any) { _ = say(output, answer) })
	for {
		line, err := input.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			session.close()
			return 0
		}
		answer := session.answer(bytes.TrimSuffix(line, []byte("\n")))
		if say(output, answer) != nil {
			return 0 // if the other end is closed, nothing is left to do
		}
		if session.ended {
			return session.status
		}
		if errors.Is(err, io.EOF) {
			session.close()
			return 0
		}
	}
}

func say(output io.Writer, answer any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answer); err != nil {
		return err
	}
	_, err := output.Write(line.Bytes())
	return err
}
