package server

import (
	"bufio"
	"net"
	"net/http"
)

// recorder remembers what was answered. Unwrap lets http.ResponseController reach
// deadlines and flushing behind it.
type recorder struct {
	http.ResponseWriter
	status   int
	streamed bool // flushed before its end
	hijacked bool
}

// WriteHeader remembers the status.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write stands for a status of 200 where none was given.
func (w *recorder) Write(data []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(data)
}

// FlushError sends what was written so far.
func (w *recorder) FlushError() error {
	w.streamed = true
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack hands the connection to the WebSocket transport.
func (w *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.hijacked = err == nil
	return conn, buffers, err
}

// Unwrap returns the writer behind this one.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recorder) code() int {
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}

func (w *recorder) answered() bool { return w.status != 0 || w.hijacked }
