DROP FUNCTION agenda_let_go;
